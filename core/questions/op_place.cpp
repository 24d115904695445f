#include "core/questions/op_place.h"

#include <fmt/format.h>

#include "core/trace/source.h"

namespace retrograd {

std::string placeOfOp(const Document& document, BoundSymbolId op, ValueId value) {
  const auto& bound = document.boundSymbol(op);
  auto text = document.opName(op);
  if (value) text += " (" + document.displayName(value) + ")";
  if (const auto module = document.text(bound.module); !module.empty()) text += ", module " + std::string(module);
  if (const auto* frame = shownFrame(sourceOf(document, op))) {
    text += fmt::format(", {}:{}", frame->file, frame->line);
    if (!frame->code.empty()) text += ": " + frame->code;
  }
  return text;
}

}  // namespace retrograd

#include "core/questions/lost_backward.h"

#include <algorithm>

#include "core/trace/opaque.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

void add(std::vector<std::string>& all, std::string text) {
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

void gather(const Document& document, BoundSymbolId op, bool opaqueToo, std::vector<std::string>& all) {
  const auto& bound = document.boundSymbol(op);
  if (opaqueToo && isOpaque(document, op)) add(all, document.opName(op));
  if (bound.source) {
    const auto& stack = document.source(bound.source);
    if (const auto* frame = customFunctionFrame(stack)) {
      const auto name = customFunctionName(stack);
      add(all,
          (name.empty() ? "a custom Function" : name) + " (" + frame->file + ":" + std::to_string(frame->line) + ")");
    }
  }
  forEachBody(document, op, [&](SubgraphId body) {
    for (auto inner : document.subgraph(body).ops) gather(document, inner, opaqueToo, all);
  });
}

}  // namespace

std::vector<std::string> lostBackwards(const Document& document, std::span<const BoundSymbolId> ops) {
  std::vector<std::string> all;
  for (auto op : ops) gather(document, op, true, all);
  return all;
}

std::vector<std::string> lostFunctions(const Document& document, std::span<const BoundSymbolId> ops) {
  std::vector<std::string> all;
  for (auto op : ops) gather(document, op, false, all);
  return all;
}

}  // namespace retrograd

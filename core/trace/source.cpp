#include "core/trace/source.h"

#include <fmt/format.h>

#include <cctype>

namespace retrograd {
namespace {

bool isPyTorch(std::string_view file) {
  return file.find("-packages/torch/") != std::string_view::npos ||
         file.find("/torch/nn/modules/") != std::string_view::npos;
}

}  // namespace

const SourceStack& sourceOf(const Document& document, BoundSymbolId op) {
  static const SourceStack none;
  if (!op) return none;
  const auto& bound = document.boundSymbol(op);
  const auto source = bound.source || !bound.origin.op ? bound.source : document.boundSymbol(bound.origin.op).source;
  return source ? document.source(source) : none;
}

const SourceFrame* shownFrame(const SourceStack& stack) {
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame)
    if (!isPyTorch(frame->file)) return &*frame;
  return stack.empty() ? nullptr : &stack.back();
}

bool callsCustomFunction(const SourceFrame& frame) {
  if (frame.code.find("def forward(ctx") != std::string::npos) return true;
  const auto call = frame.code.find(".apply("), lambda = frame.code.find("lambda ");
  if (call == std::string::npos) return false;
  // capture(model, x, loss=lambda out: Loss.apply(out)): only what runs in the lambda is the Function's.
  return lambda > call || frame.function.empty() || frame.function == "<lambda>";
}

const SourceFrame* customFunctionFrame(const SourceStack& stack) {
  for (std::size_t i = stack.size(); i-- > 0;)
    if (callsCustomFunction(stack[i]) && (i + 1 == stack.size() || !isPyTorch(stack[i + 1].file))) return &stack[i];
  return nullptr;
}

std::string customFunctionName(const SourceStack& stack) {
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
    const auto& code = frame->code;
    const auto end = code.find(".apply(");
    if (end == std::string::npos) continue;
    auto begin = end;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(code[begin - 1])) || code[begin - 1] == '_')) --begin;
    if (begin < end) return code.substr(begin, end - begin);
  }
  return {};
}

std::string placeOfOp(const Document& document, BoundSymbolId op, ValueId value) {
  const auto& bound = document.boundSymbol(op);
  auto text = fmt::format("#{} {}", op.index, document.opName(op));
  if (value) text += " (" + document.displayName(value) + ")";
  if (const auto module = document.text(bound.module); !module.empty()) text += ", module " + std::string(module);
  return text;
}

std::string pythonLine(const Document& document, BoundSymbolId op) {
  const auto* frame = shownFrame(sourceOf(document, op));
  if (!frame) return {};
  const auto name = frame->file.substr(frame->file.find_last_of("/\\") + 1);
  return fmt::format("{}:{}{}{}", name, frame->line, frame->code.empty() ? "" : "  ", frame->code);
}

}  // namespace retrograd

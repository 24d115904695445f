#include "core/trace/opaque.h"

#include <algorithm>
#include <utility>

#include "core/trace/effects.h"

namespace retrograd {

bool isOpaque(const Symbol& symbol) { return !symbol.known; }

bool isOpaque(const Document& document, BoundSymbolId op) { return isOpaque(document.symbol(op)); }

bool mayWriteUnseen(const Document& document, BoundSymbolId op) {
  const auto outputs = document.outputs(op);
  if (std::none_of(outputs.begin(), outputs.end(), [&](ValueId output) { return output && document.isTensor(output); }))
    return true;
  std::string_view name = document.symbol(op).name;
  if (const auto dot = name.rfind('.'); dot != std::string_view::npos && name.find('.') != dot)
    name = name.substr(0, dot);
  return (name.ends_with('_') && !name.ends_with("__")) || name.find("mutation") != std::string_view::npos ||
         name.find("inplace") != std::string_view::npos;
}

BoundSymbolId LeftOutWalk::reasonOf(ValueId value) const {
  if (!value) return {};
  if (left_.because[value]) return left_.because[value];
  const auto storage = document_.value(value).storage;
  return storage ? unknownMemory_[storage] : BoundSymbolId();
}

void LeftOutWalk::spoil(ValueId value, BoundSymbolId reason) {
  left_.because[value] = reason;
  if (const auto storage = document_.value(value).storage) unknownMemory_[storage] = reason;
}

void LeftOutWalk::grow() {
  if (left_.ops.size() < document_.boundSymbolCount()) left_.ops.resize(document_.boundSymbolCount());
  if (left_.because.size() < document_.valueCount()) left_.because.resize(document_.valueCount());
  if (unknownMemory_.size() < document_.storageCount()) unknownMemory_.resize(document_.storageCount());
}

void LeftOutWalk::visit(BoundSymbolId op) {
  grow();
  const bool opaque = isOpaque(document_, op);
  auto reason = opaque ? op : BoundSymbolId();
  if (!opaque)
    for (auto operand : document_.operands(op))
      if (!reason) reason = reasonOf(operand);
  if (!reason) return;
  left_.ops[op] = 1;
  for (auto output : document_.outputs(op))
    if (output && !(opaque && left_.filled.contains(output))) left_.because[output] = reason;
  for (auto written : writtenOperands(document_, op))
    if (document_.isTensor(written)) spoil(written, reason);
  if (opaque && mayWriteUnseen(document_, op))
    for (auto operand : document_.operands(op))
      if (operand && document_.isTensor(operand)) spoil(operand, reason);
}

LeftOut leftOutOf(const Document& document, std::span<const BoundSymbolId> ops, std::map<ValueId, TensorData> filled) {
  LeftOut left;
  left.filled = std::move(filled);
  LeftOutWalk walk(document, left);
  for (auto op : ops) walk.visit(op);
  return left;
}

std::string opaqueOpsText(const Document& document, std::span<const BoundSymbolId> ops) {
  std::map<std::string, int> counts;
  for (auto op : ops)
    if (isOpaque(document, op)) ++counts[document.symbol(op).name];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ", ") + name;
    if (count > 1) text += " (" + std::to_string(count) + " times)";
  }
  return text;
}

}  // namespace retrograd

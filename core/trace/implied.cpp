#include "core/trace/implied.h"

#include <algorithm>

#include "core/trace/aliasing.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// Which return of the schema a flat output belongs to.
std::size_t returnOf(const CallPattern& pattern, std::size_t output) {
  if (pattern.returns.empty()) return output;
  std::size_t end = 0;
  for (std::size_t i = 0; i < pattern.returns.size(); ++i) {
    end += pattern.returns[i] < 0 ? 1 : static_cast<std::size_t>(pattern.returns[i]);
    if (output < end) return i;
  }
  return pattern.returns.size();
}

bool contains(std::span<const ValueId> values, ValueId value) { return std::find(values.begin(), values.end(), value) != values.end(); }

bool sharesMemory(const Document& document, BoundSymbolId op) {
  for (auto output : document.outputs(op))
    for (auto operand : document.operands(op))
      if (output && operand && document.value(output).storage && document.value(output).storage == document.value(operand).storage)
        return true;
  return false;
}

}  // namespace

bool isBackward(Role role) { return role == Role::gradient || role == Role::accumulation || role == Role::zero || role == Role::cotangent; }

namespace implied {

ValueId firstOutput(const Document& document, BoundSymbolId op) {
  const auto operands = document.operands(op);
  for (auto output : document.outputs(op))
    if (output && !contains(operands, output)) return output;
  return {};
}

ValueId base(const Document& document, BoundSymbolId op, std::size_t output) {
  const auto& bound = document.boundSymbol(op);
  const auto& symbol = document.symbol(bound.symbol);
  const auto& pattern = document.pattern(bound.pattern);
  const auto value = document.outputs(op)[output];
  if (!value || !document.isTensor(value)) return {};
  const auto from = aliasedOperand(document, symbol, pattern, document.operands(op), returnOf(pattern, output));
  if (!from || !sharesStorage(symbol, document.meta(document.value(from).meta), document.meta(document.value(value).meta))) return {};
  return from;
}

std::int32_t version(const Document& document, BoundSymbolId op, std::size_t output) {
  const auto& bound = document.boundSymbol(op);
  if (bound.origin.role != Role::none) return 0;
  const auto from = base(document, op, output);
  if (!from) return 0;
  return document.value(from).version + (contains(writtenOperands(document, op), from) ? 1 : 0);
}

ValueKind kind(const BoundSymbol& bound) {
  if (bound.origin.role == Role::cotangent) return ValueKind::cotangent;
  return isBackward(bound.origin.role) ? ValueKind::gradient : ValueKind::activation;
}

std::uint8_t effects(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto& symbol = document.symbol(bound.symbol);
  const auto& pattern = document.pattern(bound.pattern);
  if (bound.origin.role == Role::none) return effectsInComputation(document, symbol, pattern, document.operands(op));
  auto effects = static_cast<std::uint8_t>(effectsOf(symbol, pattern.arguments) & ~(effect::view | effect::needsData));
  if (!symbol.isMutable && sharesMemory(document, op)) effects |= effect::view;
  return effects;
}

bool gradMode(const Document& document, const BoundSymbol& bound) {
  if (isBackward(bound.origin.role)) return false;
  if (bound.origin.op) return document.boundSymbol(bound.origin.op).gradMode;
  if (!bound.parent) return true;
  const auto& around = document.boundSymbol(bound.parent);
  const auto& arguments = document.pattern(around.pattern).arguments;
  if (document.symbol(around.symbol).name == "higher_order.wrap_with_set_grad_enabled" && !arguments.empty())
    return arguments[0].integer != 0;
  return around.gradMode;
}

std::int16_t operand(const Document& document, const Origin& origin) {
  if (!origin.op || !origin.value) return -1;
  std::int16_t position = 0;
  for (auto value : document.operands(origin.op)) {
    if (value == origin.value) return position;
    if (value && document.isTensor(value)) ++position;
  }
  return -1;
}

std::int16_t output(const Document& document, const Origin& origin) {
  if (origin.role != Role::gradient || !origin.op) return -1;
  return document.outputs(origin.op).size() == 1 ? 0 : -1;
}

std::string_view nodeName(const Document& document, BoundSymbolId op) {
  const auto first = firstOutput(document, op);
  return first ? document.text(document.value(first).name) : std::string_view();
}

}  // namespace implied
}  // namespace retrograd

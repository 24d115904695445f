#include "core/trace/implied.h"

#include <algorithm>
#include <utility>

#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// Which return of the schema a flat output belongs to.
std::size_t returnOf(const CallPattern& pattern, std::size_t output) {
  if (pattern.returns.empty()) return output;
  std::size_t end = 0;
  for (std::size_t i = 0; i < pattern.returns.size(); ++i) {
    end += pattern.returns[i] < 0 ? 1 : pattern.returns[i];
    if (output < end) return i;
  }
  return pattern.returns.size();
}

bool contains(std::span<const ValueId> values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool sharesMemory(const Document& document, BoundSymbolId op) {
  for (auto output : document.outputs(op))
    for (auto operand : document.operands(op))
      if (output && operand && document.value(output).storage &&
          document.value(output).storage == document.value(operand).storage)
        return true;
  return false;
}

}  // namespace

bool isBackward(Role role) {
  return role == Role::gradient || role == Role::accumulation || role == Role::zero || role == Role::cotangent;
}

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
  if (!from || !sharesStorage(symbol, document.meta(from), document.meta(value))) return {};
  return from;
}

std::int32_t version(const Document& document, BoundSymbolId op, std::size_t output) {
  const auto value = document.outputs(op)[output];
  const auto storage = value ? document.value(value).storage : StorageId();
  if (!storage) return 0;
  std::int32_t version = 0;
  bool writes = false;
  for (auto operand : document.operands(op))
    if (operand && document.value(operand).storage == storage)
      version = std::max(version, document.value(operand).version);
  for (auto written : writtenOperands(document, op)) writes |= document.value(written).storage == storage;
  return version + (writes ? 1 : 0);
}

ValueKind kind(const BoundSymbol& bound) {
  if (bound.origin.role == Role::cotangent) return ValueKind::cotangent;
  return isBackward(bound.origin.role) ? ValueKind::gradient : ValueKind::activation;
}

ValueKind kind(InputKind input) {
  switch (input) {
    case InputKind::parameter: return ValueKind::parameter;
    case InputKind::buffer: return ValueKind::buffer;
    case InputKind::constant: return ValueKind::constant;
    default: return ValueKind::input;
  }
}

bool requiresGrad(const Document& document, BoundSymbolId op, std::size_t output) {
  const auto& origin = document.boundSymbol(op).origin;
  const auto value = document.outputs(op)[output];
  if (!value || !document.isTensor(value) || !isDifferentiable(document.meta(value).dtype)) return false;
  if (origin.role == Role::recompute) return origin.value && document.value(origin.value).requiresGrad;
  if (origin.role != Role::forward || !origin.op || !document.boundSymbol(origin.op).gradMode) return false;
  if (!contains(document.outputs(origin.op), value)) return false;
  const auto operands = document.operands(origin.op);
  return std::any_of(operands.begin(), operands.end(),
                     [&](ValueId operand) { return operand && document.value(operand).requiresGrad; });
}

bool requiresGrad(const Document& document, const Value& input) {
  const bool may = input.kind == ValueKind::parameter || input.kind == ValueKind::input;
  return may && input.meta && isDifferentiable(document.meta(input.meta).dtype);
}

bool external(ValueKind kind) { return kind != ValueKind::activation && kind != ValueKind::gradient; }

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
  if (hasTrait(document.symbol(around.symbol).name, OpTrait::setsGradMode) && !arguments.empty())
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

ValueId namingOutput(const Document& document, const Origin& origin) {
  const auto outputs = document.outputs(origin.op);
  if (origin.output >= 0 && std::cmp_less(origin.output, outputs.size())) {
    const auto meant = outputs[origin.output];
    if (meant && !contains(document.operands(origin.op), meant)) return meant;
  }
  return firstOutput(document, origin.op);
}

std::int16_t output(const Document& document, const Origin& origin, ValueId named) {
  if (origin.role != Role::gradient || !origin.op) return -1;
  const auto outputs = document.outputs(origin.op);
  const auto found = std::find(outputs.begin(), outputs.end(), named);
  return named && found != outputs.end() ? static_cast<std::int16_t>(found - outputs.begin()) : std::int16_t{0};
}

bool isTensor(const Document& document, BoundSymbolId op, std::size_t output) {
  const auto& bound = document.boundSymbol(op);
  const auto& returns = document.symbol(bound.symbol).returns;
  const auto position = returnOf(document.pattern(bound.pattern), output);
  return position < returns.size() && returns[position].type.starts_with("Tensor");
}

std::vector<ValueId> passedOperands(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  std::vector<ValueId> passed;
  if (!hasTrait(document.symbol(bound.symbol).name, OpTrait::passesOperands)) return passed;
  const auto& arguments = document.pattern(bound.pattern).arguments;
  std::size_t lastGraph = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].kind == Argument::Kind::subgraph) lastGraph = i;
  const auto operands = document.operands(op);
  for (std::size_t i = lastGraph + 1; i < arguments.size(); ++i)
    forEachOperand(arguments[i], [&](std::size_t hole) { passed.push_back(operands[hole]); });
  return passed;
}

bool replays(const BoundSymbol& bound) {
  return bound.origin.role == Role::recompute && (bound.effects & effect::random) != 0;
}

ValueId sumBefore(const Document& document, BoundSymbolId op) {
  constexpr std::uint32_t mostInFull = 8;
  const auto& origin = document.boundSymbol(op).origin;
  if (origin.role != Role::accumulation || origin.termCount <= mostInFull) return {};
  for (auto operand : document.operands(op)) {
    const auto producer = operand ? document.value(operand).producer : BoundSymbolId();
    if (!producer) continue;
    const auto& before = document.boundSymbol(producer).origin;
    if (before.role == Role::accumulation && before.value == origin.value && before.termsBegin == origin.termsBegin &&
        before.termCount + 1 == origin.termCount)
      return operand;
  }
  return {};
}

std::string_view nodeName(const Document& document, BoundSymbolId op) {
  const auto first = firstOutput(document, op);
  return first ? document.text(document.value(first).name) : std::string_view();
}

}  // namespace implied

namespace {

/// Sizes that a view of these sizes and strides can take without copying (at::detail::computeStride, in short:
/// contiguous runs).
bool viewable(const TensorMeta& from, const TensorMeta& to) {
  std::int64_t step = 1;
  for (std::size_t i = from.sizes.size(); i-- > 0;) {
    if (from.sizes[i] == 1) continue;
    if (i >= from.strides.size() || from.strides[i] != step)
      return from.sizes == to.sizes && from.strides == to.strides;
    step *= from.sizes[i];
  }
  return true;
}

}  // namespace

bool sharesStorage(const Symbol& symbol, const TensorMeta& from, const TensorMeta& to) {
  if (!hasTrait(symbol.name, OpTrait::copiesAtNeed)) return true;
  if (from.dtype != to.dtype || from.device != to.device || from.offset != to.offset) return false;
  if (hasTrait(symbol.name, OpTrait::copiesOtherwise)) return from.strides == to.strides;
  return viewable(from, to);
}

ValueId aliasedOperand(const Document& document, const Symbol& symbol, const CallPattern& pattern,
                       std::span<const ValueId> operands, std::size_t returned) {
  if (returned >= symbol.returns.size()) return {};
  if (symbol.name == "aten._unsafe_view.default")  // a view of memory, though autograd is not to know
    return operands.empty() || !operands[0] || !document.isTensor(operands[0]) ? ValueId() : operands[0];
  if (symbol.returns[returned].aliasSet < 0) return {};
  ValueId first;
  for (std::size_t i = 0; i < symbol.arguments.size() && i < pattern.arguments.size() && !first; ++i) {
    if (symbol.arguments[i].aliasSet != symbol.returns[returned].aliasSet) continue;
    forEachOperand(pattern.arguments[i], [&](std::size_t hole) {
      if (!first && hole < operands.size() && operands[hole] && document.isTensor(operands[hole]))
        first = operands[hole];
    });
  }
  return first;
}

}  // namespace retrograd

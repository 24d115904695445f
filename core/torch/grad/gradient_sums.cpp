#include "core/torch/grad/gradient_sums.h"

#include <algorithm>
#include <array>

namespace retrograd {

void GradientSums::add(ValueId value, ValueId gradient) {
  auto& slot = gradients_[value];
  if (slot.refused) return;
  slot.terms.push_back(gradient);
  if (!slot.sum) {
    slot.sum = gradient;
    return;
  }
  Origin origin{.role = Role::accumulation, .value = value};
  if (const auto producer = document_.value(value).producer) {
    const auto& bound = document_.boundSymbol(producer);
    origin.op = bound.origin.role == Role::none ? producer : bound.origin.op;
  }
  slot.sum = byParts_.contains(value) ? addParts(slot.sum, gradient, origin) : addTwo(slot.sum, gradient, origin);
  slot.additions.push_back(document_.value(slot.sum).producer);
}

ValueId GradientSums::emit(std::string_view symbol, const CallPattern& pattern, std::span<const ValueId> tensors,
                           const Origin& origin) {
  const Rule& rule =
      *rules_.find(writer_.internOp(std::string(symbol)), document_.internPattern(pattern), tensors).rule;
  const auto result = rule.outputs[0];
  if (result < rule.operandCount) return tensors[result];
  const auto begin = writer_.addLocals(rule, tensors, ValueKind::gradient);
  for (const auto& op : rule.forward) writer_.emit(op, begin, origin);
  return writer_.locals()[begin + result];
}

ValueId GradientSums::addTwo(ValueId a, ValueId b, const Origin& origin) {
  static const CallPattern addition{{Argument::ofOperand(0), Argument::ofOperand(1), Argument::ofInt(1)}, {}, 2, {-1}};
  return emit("aten.add.Tensor", addition, std::array{a, b}, origin);
}

ValueId GradientSums::addParts(ValueId a, ValueId b, const Origin& origin) {
  static const CallPattern unary{{Argument::ofOperand(0)}, {}, 1, {}};
  auto step = origin;  // only the last op is the addition for people
  step.role = Role::gradient;
  const auto partsOf = [&](ValueId id) {
    return emit("aten.view_as_real.default", unary,
                std::array{emit("aten.resolve_conj.default", unary, std::array{id}, step)}, step);
  };
  const auto left = partsOf(a), right = partsOf(b);
  return emit("aten.view_as_complex.default", unary, std::array{addTwo(left, right, step)}, origin);
}

void GradientSums::refuse(ValueId value, BoundSymbolId through) {
  if (document_.isTensor(value) && document_.value(value).requiresGrad && !gradients_[value].refused)
    gradients_[value].refused = through;
}

void GradientSums::reshape(const std::map<ValueId, std::vector<std::int64_t>>& sizesOf) {
  for (const auto& [input, sizes] : sizesOf) {
    auto& slot = gradients_[input];
    if (!slot.sum || slot.refused || document_.meta(slot.sum).sizes == sizes) continue;
    Origin origin{.role = Role::gradient, .value = input};
    if (const auto producer = document_.value(slot.sum).producer) origin.op = document_.boundSymbol(producer).origin.op;
    slot.sum = emit("aten.reshape.default", {{Argument::ofOperand(0), integers(sizes)}, {}, 1, {}},
                    std::array{slot.sum}, origin);
  }
}

/// The k-th addition into a value sums the first k + 1 terms: one list in the document serves them all.
void GradientSums::nameTerms() {
  for (const auto& gradient : gradients_) {
    if (gradient.additions.empty()) continue;
    Origin shared;
    document_.setTerms(shared, gradient.terms);
    for (std::size_t k = 0; k < gradient.additions.size(); ++k) {
      auto& origin = document_.boundSymbol(gradient.additions[k]).origin;
      origin.termsBegin = shared.termsBegin;
      origin.termCount = static_cast<std::uint32_t>(std::min<std::size_t>(k + 2, gradient.terms.size()));
    }
  }
}

}  // namespace retrograd

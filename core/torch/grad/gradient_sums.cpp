#include "core/torch/grad/gradient_sums.h"

#include <algorithm>
#include <array>

#include "core/torch/grad/literals.h"

namespace retrograd {

void GradientSums::add(ValueId value, ValueId gradient) {
  auto& slot = gradients_[value];
  if (slot.refused) return;
  slot.terms.push_back(gradient);
  if (!slot.sum) {
    slot.sum = gradient;
    return;
  }
  static const CallPattern addition{{Argument::ofOperand(0), Argument::ofOperand(1), Argument::ofInt(1)}, {}, 2, {-1}};
  const std::array<ValueId, 2> tensors{slot.sum, gradient};
  const Rule& rule = *rules_.find(writer_.internOp("aten.add.Tensor"), document_.internPattern(addition), tensors).rule;
  const auto begin = writer_.addLocals(rule, tensors, ValueKind::gradient);
  Origin origin;
  origin.role = Role::accumulation;
  origin.value = value;
  if (const auto producer = document_.value(value).producer) {
    const auto& bound = document_.boundSymbol(producer);
    origin.op = bound.origin.role == Role::none ? producer : bound.origin.op;
  }
  for (const auto& op : rule.forward) slot.additions.push_back(writer_.emit(op, begin, origin));
  slot.sum = writer_.locals()[begin + rule.outputs[0]];
}

void GradientSums::refuse(ValueId value, BoundSymbolId through) {
  if (document_.isTensor(value) && document_.value(value).requiresGrad && !gradients_[value].refused) gradients_[value].refused = through;
}

void GradientSums::reshape(const std::map<ValueId, std::vector<std::int64_t>>& sizesOf) {
  for (const auto& [input, sizes] : sizesOf) {
    auto& slot = gradients_[input];
    if (!slot.sum || slot.refused || document_.meta(document_.value(slot.sum).meta).sizes == sizes) continue;
    const std::array tensors{slot.sum};
    const auto pattern = document_.internPattern({{Argument::ofOperand(0), integers(sizes)}, {}, 1, {}});
    const Rule& rule = *rules_.find(writer_.internOp("aten.reshape.default"), pattern, tensors).rule;
    const auto begin = writer_.addLocals(rule, tensors, ValueKind::gradient);
    Origin origin;
    origin.role = Role::gradient;
    origin.value = input;
    if (const auto producer = document_.value(slot.sum).producer) origin.op = document_.boundSymbol(producer).origin.op;
    for (const auto& op : rule.forward) writer_.emit(op, begin, origin);
    slot.sum = writer_.locals()[begin + rule.outputs[0]];
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

#include "core/torch/experiments/compare_lane.h"

#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/placement.h"
#include "core/trace/effects.h"

namespace retrograd {

Lane::Lane(const Analysis& analysis, std::map<ValueId, TensorData> replaced)
    : analysis_(analysis),
      replaced_(std::move(replaced)),
      evaluator_(evaluatorOf(analysis, startValues(analysis))),
      lastUses_(*analysis.document, analysis.joint),
      lastWrite_(analysis.document->storageCount(), -1) {
  const auto& ops = analysis.joint.ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const auto operand : writtenOperands(*analysis.document, ops[i]))
      if (const auto storage = analysis.document->value(operand).storage)
        lastWrite_[storage] = static_cast<std::int64_t>(i);
  for (const auto& [value, data] : replaced_) replace(value);
}

void Lane::replace(ValueId value) {
  const auto found = replaced_.find(value);
  if (found == replaced_.end() || !evaluator_.hasTensor(value)) return;
  const auto tensor = evaluator_.tensor(value);
  const auto content = Placement().place(found->second, toDevice(tensor.device()));
  const auto storage = analysis_.document->value(value).storage;
  if (storage && analysis_.document->storage(storage).external) evaluator_.bind(value, content);
  else tensor.copy_(content);
}

void Lane::step() {
  if (position_ > 0) evaluator_.releaseOwn(lastUses_.values(position_ - 1));
  const auto op = analysis_.joint.ops.at(position_);
  evaluator_.run(op);
  ++position_;
  if (!replaced_.empty())
    for (const auto output : analysis_.document->outputs(op)) replace(output);
}

at::Tensor Lane::keep(ValueId value) const {
  if (!value) return {};
  auto tensor = evaluator_.tensorOrNone(value);
  if (!tensor.defined()) return tensor;
  const auto storage = analysis_.document->value(value).storage;
  const bool isWritten = storage && lastWrite_[storage] >= static_cast<std::int64_t>(position_);
  return isWritten ? tensor.clone() : tensor;
}

}  // namespace retrograd

#include "core/torch/session/fault_watch.h"

#include <ATen/ops/sum.h>

#include <cmath>
#include <deque>
#include <utility>

#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/statistics.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// A sum meets every element at the speed of memory. It may also overflow by itself: statistics then decide.
bool sumIsFinite(const at::Tensor& tensor) {
  const bool summed = tensor.layout() == at::kStrided && tensor.element_size() > 1 && !tensor.is_quantized() &&
                      tensor.scalar_type() != at::kComplexHalf;  // LibTorch has no sum of these
  if (!summed) return false;
  const auto total = tensor.sum().item();
  if (!total.isComplex()) return std::isfinite(total.toDouble());
  const auto both = total.toComplexDouble();
  return std::isfinite(both.real()) && std::isfinite(both.imag());
}

}  // namespace

/// Statistics of the values that a GPU has, which stay there until the end.
struct FaultWatch::OnGpu {
  explicit OnGpu(std::size_t mostValues) : statistics(mostValues) {}
  RunStatistics statistics;
  std::deque<std::pair<ValueId, TensorStatistics>> values;
};

FaultWatch::FaultWatch(const Analysis& analysis) : analysis_(analysis), intended_(analysis) {
  if (analysis.device.type == Device::Type::cuda) onGpu_ = std::make_unique<OnGpu>(analysis.document->valueCount());
}
FaultWatch::~FaultWatch() = default;

void FaultWatch::lookAt(const Evaluator& evaluator, ValueId value) {
  if (seen_ || !evaluator.hasTensor(value)) return;
  const auto tensor = evaluator.tensor(value);
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) return;
  if (onGpu_ && tensor.is_cuda()) {
    auto& [id, statistics] = onGpu_->values.emplace_back(value, TensorStatistics());
    return onGpu_->statistics.add(analysis_.document->value(value).storage, tensor, statistics);
  }
  if (!sumIsFinite(tensor)) seen_ = intended_.isFault(value, computeStatistics(tensor));
}

void FaultWatch::lookAtInputs(const Evaluator& evaluator) {
  for (auto input : analysis_.joint.inputs) lookAt(evaluator, input);
  if (onGpu_) onGpu_->statistics.endOp();
}

void FaultWatch::look(const Evaluator& evaluator, BoundSymbolId op) {
  const auto& document = *analysis_.document;
  if (onGpu_)
    for (auto operand : writtenOperands(document, op)) onGpu_->statistics.written(document.value(operand).storage);
  if (leavesUninitialised(document, op)) return;
  for (auto output : document.outputs(op)) lookAt(evaluator, output);
  if (onGpu_) onGpu_->statistics.endOp();
}

bool FaultWatch::seen() {
  if (!onGpu_) return seen_;
  onGpu_->statistics.settle();
  for (const auto& [value, statistics] : std::exchange(onGpu_->values, {}))
    seen_ = seen_ || intended_.isFault(value, statistics);
  return seen_;
}

}  // namespace retrograd

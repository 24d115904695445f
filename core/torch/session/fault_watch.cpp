#include "core/torch/session/fault_watch.h"

#include <ATen/ops/sum.h>

#include <cmath>

#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/statistics.h"

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

void FaultWatch::lookAt(const Evaluator& evaluator, ValueId value) {
  if (seen_ || !value || !evaluator.has(value) || !evaluator.value(value).isTensor()) return;
  const auto tensor = evaluator.tensor(value);
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex()) || sumIsFinite(tensor)) return;
  seen_ = intended_.isFault(value, computeStatistics(tensor));
}

void FaultWatch::lookAtInputs(const Evaluator& evaluator) {
  for (auto input : analysis_.joint.inputs) lookAt(evaluator, input);
}

void FaultWatch::look(const Evaluator& evaluator, BoundSymbolId op) {
  if (leavesUninitialised(*analysis_.document, op)) return;
  for (auto output : analysis_.document->outputs(op)) lookAt(evaluator, output);
}

}  // namespace retrograd

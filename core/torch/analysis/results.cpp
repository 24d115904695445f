#include "core/torch/analysis/results.h"

namespace retrograd {
namespace {

std::optional<TensorData> held(const Evaluator& evaluator, ValueId id,
                               TensorData (*keep)(const at::Tensor&) = copyOut) {
  if (!evaluator.hasTensor(id)) return std::nullopt;
  return keep(evaluator.tensor(id));
}

}  // namespace

TensorMap gradientsOf(const Analysis& analysis, const Evaluator& evaluator, TensorData (*keep)(const at::Tensor&)) {
  TensorMap gradients;
  const auto& inputs = analysis.computation().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (auto gradient = held(evaluator, analysis.joint.outputs.at(analysis.joint.resultCount + i), keep))
      gradients[resultKey(inputs[i], "p.")] = *gradient;
  return gradients;
}

std::vector<std::optional<TensorData>> resultsOf(const Analysis& analysis, const Evaluator& evaluator) {
  std::vector<std::optional<TensorData>> results;
  for (std::size_t i = 0; i < analysis.computation().outputs.size(); ++i)
    if (!userOutputPosition(analysis.computation(), i).empty())
      results.push_back(held(evaluator, analysis.joint.outputs[i]));
  return results;
}

TensorMap mutatedOf(const Analysis& analysis, const Evaluator& evaluator) {
  TensorMap mutated;
  for (const auto& [key, id] : mutatedValues(analysis))
    if (auto tensor = held(evaluator, id)) mutated[key] = *tensor;
  return mutated;
}

}  // namespace retrograd

#include "core/debug/results.h"

#include <set>

#include "core/debug/bindings.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

std::optional<TensorData> held(const Evaluator& evaluator, ValueId id) {
  if (!id || !evaluator.has(id) || !evaluator.value(id).isTensor()) return std::nullopt;
  return copyOut(evaluator.tensor(id));
}

/// Inputs that an op of the forward writes with no value of its own for the result, as native_batch_norm does.
std::set<ValueId> writtenSilently(const Analysis& analysis) {
  std::set<ValueId> written;
  const auto& document = *analysis.document;
  for (auto op : analysis.forward.ops)
    for (auto id : writtenOperands(document, op))
      if (const auto storage = document.value(id).storage; storage && document.storage(storage).external) written.insert(id);
  return written;
}

}  // namespace

std::string resultKey(const InputSpec& input, const std::string& prefix) {
  return input.kind == InputKind::user ? "in." + input.name : prefix + input.target;
}

TensorMap gradientsOf(const Analysis& analysis, const Evaluator& evaluator) {
  TensorMap gradients;
  const auto& inputs = analysis.computation().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (auto gradient = held(evaluator, analysis.joint.outputs.at(analysis.joint.resultCount + i))) gradients[resultKey(inputs[i], "p.")] = *gradient;
  return gradients;
}

std::vector<std::optional<TensorData>> resultsOf(const Analysis& analysis, const Evaluator& evaluator) {
  std::vector<std::optional<TensorData>> results;
  for (std::size_t i = 0; i < analysis.computation().outputs.size(); ++i)
    if (!userOutputPosition(analysis.computation(), i).empty()) results.push_back(held(evaluator, analysis.joint.outputs[i]));
  return results;
}

TensorMap mutatedOf(const Analysis& analysis, const Evaluator& evaluator) {
  TensorMap mutated;
  const auto& computation = analysis.computation();
  const auto put = [&](const std::string& key, ValueId id) {
    if (auto tensor = held(evaluator, id)) mutated[key] = *tensor;
  };
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto& output = computation.outputs[i];
    if (output.kind == OutputKind::bufferMutation) put("b." + output.target, analysis.joint.outputs[i]);
    if (output.kind == OutputKind::inputMutation) put("in." + output.target, analysis.joint.outputs[i]);
  }
  const auto silently = writtenSilently(analysis);
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto id = computation.trace.inputs[i];
    const auto key = resultKey(computation.inputs[i], "b.");
    if (mutated.contains(key)) continue;  // the buffer is another tensor by now
    if (auto it = analysis.mutated.find(i); it != analysis.mutated.end()) put(key, it->second);
    else if (id && silently.contains(id)) put(key, id);
  }
  return mutated;
}

}  // namespace retrograd

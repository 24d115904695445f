#include "core/checking/joint_run.h"
#include "core/debug/bindings.h"
#include "core/execution/evaluator.h"

namespace retrograd {
namespace {

std::optional<TensorData> copied(const Evaluator& evaluator, ValueId id) {
  if (!id || !evaluator.has(id) || !evaluator.value(id).isTensor()) return std::nullopt;
  return copyOut(evaluator.tensor(id));
}

std::string keyOf(const InputSpec& input, const char* owner) {
  return (input.kind == InputKind::user ? "in." + input.name : owner + input.target);
}

}  // namespace

RunResult runSplit(const Analysis& analysis) {
  const auto& computation = analysis.computation();
  Evaluator forward(*analysis.document, analysis.seed);
  for (auto& [id, value] : inputBindings(analysis)) forward.bind(id, value);
  for (auto op : analysis.forward.ops) forward.run(op);

  // The backward gets what its signature names and nothing else, and goes on with the forward's generator.
  Evaluator backward(*analysis.document, analysis.seed);
  backward.setGenerator(forward.generator());
  for (auto id : analysis.backward.inputs)
    if (id && forward.has(id)) backward.bind(id, forward.value(id));
  for (auto& [id, value] : cotangentBindings(analysis)) backward.bind(id, value);
  for (const auto& [id, data] : analysis.constants) backward.bind(ValueId(std::stoll(id)), borrowTensor(data));
  for (auto op : analysis.backward.ops) backward.run(op);

  RunResult result;
  for (std::size_t i = 0; i < computation.outputs.size(); ++i)
    if (!userOutputPosition(computation, i).empty()) result.outputs.push_back(copied(forward, analysis.forward.outputs[i]));
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    if (auto gradient = copied(backward, analysis.backward.outputs[i])) result.gradients[keyOf(computation.inputs[i], "p.")] = *gradient;
    const auto after = analysis.mutated.find(i);
    if (after == analysis.mutated.end()) continue;
    if (auto tensor = copied(forward, after->second)) result.mutated[keyOf(computation.inputs[i], "b.")] = *tensor;
  }
  return result;
}

}  // namespace retrograd

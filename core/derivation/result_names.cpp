#include "core/derivation/result_names.h"

#include <set>

#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// Inputs that an op of the forward writes with no value of its own for the result, as native_batch_norm does.
std::set<ValueId> writtenSilently(const Analysis& analysis) {
  std::set<ValueId> written;
  const auto& document = *analysis.document;
  for (auto op : analysis.forward.ops)
    for (auto id : writtenOperands(document, op))
      if (const auto storage = document.value(id).storage; storage && document.storage(storage).external)
        written.insert(id);
  return written;
}

}  // namespace

std::string resultKey(const InputSpec& input, const std::string& prefix) {
  return input.kind == InputKind::user ? "in." + input.name : prefix + input.target;
}

std::map<std::string, ValueId> mutatedValues(const Analysis& analysis) {
  std::map<std::string, ValueId> mutated;
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto& output = computation.outputs[i];
    if (output.kind == OutputKind::bufferMutation) mutated["b." + output.target] = analysis.joint.outputs[i];
    if (output.kind == OutputKind::inputMutation) mutated["in." + output.target] = analysis.joint.outputs[i];
  }
  const auto silently = writtenSilently(analysis);
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    const auto id = computation.trace.inputs[i];
    const auto key = resultKey(computation.inputs[i], "b.");
    if (mutated.contains(key)) continue;  // the buffer is another tensor by now
    if (auto it = analysis.mutated.find(i); it != analysis.mutated.end()) mutated[key] = it->second;
    else if (id && silently.contains(id)) mutated[key] = id;
  }
  return mutated;
}

const TensorData* inputData(const Analysis& analysis, std::size_t i) {
  const auto& input = analysis.computation().inputs[i];
  const auto find = [](const TensorMap& map, const std::string& key) -> const TensorData* {
    const auto it = map.find(key);
    return it == map.end() ? nullptr : &it->second;
  };
  if (input.kind == InputKind::token || input.kind == InputKind::object) return nullptr;
  if (input.kind == InputKind::user) return find(analysis.request.inputs, input.name);
  const auto* data = find(analysis.file.weights, input.target);
  return data ? data : find(analysis.file.constants, input.target);
}

}  // namespace retrograd

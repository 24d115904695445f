#include "core/debug/bindings.h"

#include "core/tracing/convert.h"

namespace retrograd {

at::Tensor inputTensor(const Analysis& analysis, std::size_t i) {
  const auto* data = inputData(analysis, i);
  const auto& input = analysis.computation().inputs[i];
  const bool needsData = input.kind == InputKind::parameter || input.kind == InputKind::buffer || input.kind == InputKind::constant;
  if (!data && needsData) throw Error(ErrorCode::badInput, "the file holds no data for '" + input.target + "'", analysis.file.path);
  return data ? borrowTensor(*data) : at::Tensor();
}

std::vector<std::pair<ValueId, c10::IValue>> inputBindings(const Analysis& analysis) {
  std::vector<std::pair<ValueId, c10::IValue>> bindings;
  const auto& computation = analysis.computation();
  for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
    if (!computation.trace.inputs[i]) continue;
    if (auto tensor = inputTensor(analysis, i); tensor.defined()) bindings.emplace_back(computation.trace.inputs[i], tensor);
  }
  for (const auto& [id, data] : analysis.constants) bindings.emplace_back(ValueId(std::stoll(id)), borrowTensor(data));
  return bindings;
}

std::vector<std::pair<ValueId, c10::IValue>> cotangentBindings(const Analysis& analysis) {
  std::vector<std::pair<ValueId, c10::IValue>> bindings;
  const auto& computation = analysis.computation();
  const auto inputs = computation.trace.inputs.size();
  for (std::size_t i = 0; i < computation.outputs.size() && inputs + i < analysis.joint.inputs.size(); ++i) {
    const auto id = analysis.joint.inputs[inputs + i];
    if (!id) continue;
    const auto it = analysis.cotangents.find(userOutputPosition(computation, i));
    if (it != analysis.cotangents.end()) bindings.emplace_back(id, borrowTensor(it->second));
  }
  return bindings;
}

}  // namespace retrograd

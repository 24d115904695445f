#include "core/debug/bindings.h"

#include "core/tracing/convert.h"

namespace retrograd {

at::Tensor inputTensor(const Analysis& analysis, std::size_t i) {
  const auto& input = analysis.computation().inputs[i];
  const auto find = [&](const TensorMap& map, const std::string& key) -> const TensorData* {
    auto it = map.find(key);
    return it == map.end() ? nullptr : &it->second;
  };
  const TensorData* data = nullptr;
  switch (input.kind) {
    case InputKind::user: data = find(analysis.inputs, input.name); break;
    case InputKind::token:
    case InputKind::object: return {};
    default:
      data = find(analysis.file.weights, input.target);
      if (!data) data = find(analysis.file.constants, input.target);
      if (!data) throw Error(ErrorCode::badInput, "the file holds no data for '" + input.target + "'", analysis.file.path);
  }
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

std::string userOutputPosition(const Computation& computation, std::size_t i) {
  const auto user = [&](std::size_t k) { return computation.outputs[k].kind == OutputKind::user || computation.outputs[k].kind == OutputKind::loss; };
  if (!user(i)) return {};
  std::size_t position = 0;
  for (std::size_t k = 0; k < i; ++k) position += user(k);
  return std::to_string(position);
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

#include "core/debug/bindings.h"

#include "core/execution/placement.h"
#include "core/tracing/convert.h"

namespace retrograd {
namespace {

Device placeOf(const Analysis& analysis, ValueId id) {
  const auto& document = *analysis.file.document;
  return id && document.isTensor(id) ? document.meta(document.value(id).meta).device : Device();
}

/// Null for tokens, objects, and user inputs that are no tensors.
const TensorData* inputData(const Analysis& analysis, std::size_t i) {
  const auto& input = analysis.computation().inputs[i];
  const auto find = [&](const TensorMap& map, const std::string& key) -> const TensorData* {
    auto it = map.find(key);
    return it == map.end() ? nullptr : &it->second;
  };
  switch (input.kind) {
    case InputKind::user: return find(analysis.inputs, input.name);
    case InputKind::token:
    case InputKind::object: return nullptr;
    default: break;
  }
  const auto* data = find(analysis.file.weights, input.target);
  if (!data) data = find(analysis.file.constants, input.target);
  if (!data) throw Error(ErrorCode::badInput, "the file holds no data for '" + input.target + "'", analysis.file.path);
  return data;
}

}  // namespace

at::Tensor inputTensor(const Analysis& analysis, std::size_t i) {
  const auto* data = inputData(analysis, i);
  return data ? Placement().place(*data, placeOf(analysis, analysis.computation().trace.inputs[i])) : at::Tensor();
}

std::vector<std::pair<ValueId, c10::IValue>> inputBindings(const Analysis& analysis, std::optional<Device> on) {
  std::vector<std::pair<ValueId, c10::IValue>> bindings;
  Placement placement;
  const auto bind = [&](ValueId id, const TensorData& data) { bindings.emplace_back(id, placement.place(data, on.value_or(placeOf(analysis, id)))); };
  const auto& inputs = analysis.computation().trace.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const auto* data = inputs[i] ? inputData(analysis, i) : nullptr) bind(inputs[i], *data);
  for (const auto& [id, data] : analysis.constants) bind(ValueId(std::stoll(id)), data);
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
    if (it != analysis.cotangents.end()) bindings.emplace_back(id, Placement().place(it->second, placeOf(analysis, id)));
  }
  return bindings;
}

}  // namespace retrograd

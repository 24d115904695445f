#include "core/torch/analysis/input_values.h"

#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "core/formats/files/deferred_check.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/placement.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/lay_out.h"

namespace retrograd {
namespace {

Device placeOf(const Analysis& analysis, ValueId id) {
  const auto& document = *analysis.file.document;
  return id && document.isTensor(id) ? document.meta(id).device : Device();
}

/// The same view in memory of its own, of which all bytes are a copy: a recorded step writes to it.
at::Tensor ownCopy(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.device().is_cuda()) return tensor;
  return at::empty({0}, tensor.options())
      .set_(wholeStorage(tensor).clone().storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

/// Null for tokens, objects, and user inputs that are not tensors.
const TensorData* requiredData(const Analysis& analysis, std::size_t i) {
  const auto* data = inputData(analysis, i);
  const auto& input = analysis.computation().inputs[i];
  const bool needsData =
      input.kind == InputKind::parameter || input.kind == InputKind::buffer || input.kind == InputKind::constant;
  if (!data && needsData)
    throw Error(ErrorCode::badInput, "the file holds no data for '" + input.target + "'", analysis.file.path);
  return data;
}

}  // namespace

void requireInputValues(const Analysis& analysis) {
  requireDevice(analysis.device);
  for (std::size_t i = 0; i < analysis.computation().inputs.size(); ++i)
    if (analysis.computation().trace.inputs[i]) requiredData(analysis, i);
}

at::Tensor inputTensor(const Analysis& analysis, std::size_t i) {
  const auto* data = requiredData(analysis, i);
  return data ? Placement().place(*data, placeOf(analysis, analysis.computation().trace.inputs[i])) : at::Tensor();
}

std::vector<std::pair<ValueId, c10::IValue>> inputValues(const Analysis& analysis, std::optional<Device> on) {
  std::vector<std::pair<ValueId, c10::IValue>> bindings;
  Placement placement;
  const auto bind = [&](ValueId id, const TensorData& data) {
    const auto place = on.value_or(placeOf(analysis, id));
    std::optional<VerifyLater> later;  // the evaluator asks before an op reads it; what is uploaded is read here
    if (place.type == Device::Type::cpu) later.emplace();
    if (place.type == Device::Type::meta) {  // of a recorded step: a shape without numbers
      bindings.emplace_back(id, at::empty_strided(data.meta.sizes, data.meta.strides,
                                                  at::TensorOptions(toScalarType(data.meta.dtype)).device(c10::kMeta)));
      return;
    }
    auto tensor = placement.place(data, place);
    bindings.emplace_back(id, analysis.file.recording ? ownCopy(tensor) : std::move(tensor));
  };
  const auto& inputs = analysis.computation().trace.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const auto* data = inputs[i] ? requiredData(analysis, i) : nullptr) bind(inputs[i], *data);
  for (const auto& [id, data] : analysis.constants) bind(id, data);
  return bindings;
}

std::vector<std::pair<ValueId, c10::IValue>> cotangentValues(const Analysis& analysis) {
  std::vector<std::pair<ValueId, c10::IValue>> bindings;
  const auto& computation = analysis.computation();
  const auto inputs = computation.trace.inputs.size();
  for (std::size_t i = 0; i < computation.outputs.size() && inputs + i < analysis.joint.inputs.size(); ++i) {
    const auto id = analysis.joint.inputs[inputs + i];
    if (!id) continue;
    const auto it = analysis.request.cotangents.find(userOutputPosition(computation, i));
    if (it != analysis.request.cotangents.end())
      bindings.emplace_back(id, Placement().place(it->second, placeOf(analysis, id)));
  }
  return bindings;
}

std::vector<std::pair<ValueId, c10::IValue>> startValues(const Analysis& analysis) {
  auto values = inputValues(analysis);
  std::ranges::move(cotangentValues(analysis), std::back_inserter(values));
  return values;
}

Evaluator evaluatorOf(const Analysis& analysis, const std::vector<std::pair<ValueId, c10::IValue>>& values) {
  Evaluator evaluator(*analysis.document, analysis.request.seed);
  evaluator.setLeftOut(analysis.leftOut);
  for (const auto& [id, value] : values) evaluator.bind(id, value);
  return evaluator;
}

}  // namespace retrograd

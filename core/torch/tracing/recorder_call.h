#pragma once
// What the recorder knows of the op that is being called. Only its .cpp files include this.
#include <optional>
#include <vector>

#include "core/torch/tracing/recorder.h"

namespace retrograd {

/// One op on its way through the handler.
struct Recorder::Call {
  const c10::OperatorHandle& op;
  torch::jit::Stack arguments;  // as they came: hollow or real tensors
  torch::jit::Stack twins;      // the same on meta tensors
  torch::jit::Stack results;
  std::vector<at::Tensor> inputs;  // tensors among the arguments
  c10::Device device{c10::kCPU};
  RecordedOp record;
};

/// Calls `visit` for the tensors of an argument or result, those of lists too. Undefined ones are left out.
template <class Visit>
void forEachTensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector())
      if (tensor && tensor->defined()) visit(*tensor);
  }
}

/// The same value with `map` of each defined tensor in the tensor's place.
template <class Map>
c10::IValue mapTensors(const c10::IValue& value, Map&& map) {
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(map(value.toTensor())) : value;
  if (value.isTensorList()) {
    std::vector<at::Tensor> mapped;
    for (const at::Tensor& tensor : value.toTensorVector()) mapped.push_back(tensor.defined() ? map(tensor) : tensor);
    return mapped;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> mapped;
    for (const auto& tensor : value.toOptionalTensorVector())
      mapped.push_back(tensor && tensor->defined() ? std::optional<at::Tensor>(map(*tensor)) : std::nullopt);
    return mapped;
  }
  return value;
}

}  // namespace retrograd

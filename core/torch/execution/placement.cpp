#include "core/torch/execution/placement.h"

#include "core/torch/execution/device.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/lay_out.h"

namespace retrograd {

at::Tensor Placement::place(const TensorData& data, Device device) {
  if (data.memory.type != Device::Type::cpu) {
    const auto there = borrowTensor(data).to(toTorchDevice(device));  // leaves gaps out
    return there.strides() == at::IntArrayRef(data.meta.strides) ? there : laidOut(there, data.meta.strides);
  }
  if (device.type != Device::Type::cuda) return borrowTensor(data);
  requireDevice(device);
  const auto target = toTorchDevice(device);
  if (data.meta.layout != Layout::strided || data.meta.elements() == 0 || !data.data)
    return borrowTensor(data).to(target);
  auto& flat = uploaded_[{data.data, data.meta.dtype}];
  if (!flat.defined() || flat.device() != target) {
    TensorData whole = data;
    whole.meta = {};
    whole.meta.dtype = data.meta.dtype;
    whole.meta.sizes = {static_cast<std::int64_t>(data.bytes) / itemSize(data.meta.dtype)};
    whole.meta.strides = {1};
    flat = borrowTensor(whole).to(target);
  }
  return flat.as_strided(data.meta.sizes, data.meta.strides, data.meta.offset);
}

}  // namespace retrograd

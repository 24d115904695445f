#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <utility>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// Puts tensors where a document says they are. On the CPU they are borrowed; for a GPU their storage is uploaded as a
/// whole, with strides and offset as they were, and tensors over the same bytes share one upload while the Placement
/// lives.
class Placement {
 public:
  /// Throws Error(badUse) as requireDevice() does.
  at::Tensor place(const TensorData& data, Device device);

 private:
  std::map<std::pair<const std::byte*, DType>, at::Tensor> uploaded_;
};

}  // namespace retrograd

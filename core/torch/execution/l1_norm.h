#pragma once
#include <ATen/core/Tensor.h>

namespace retrograd {

/// The L1 norm as PyTorch's DebugMode records it: of the elements in double precision (complex ones by absolute value),
/// after integers and booleans were rounded to float32. NaN and infinities stay. On the device that the tensor is on.
double l1Norm(const at::Tensor& tensor);

}  // namespace retrograd

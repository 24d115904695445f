#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/base/tensor_statistics.h"

namespace retrograd {

/// One pass over the elements on the CPU; complex tensors by absolute value.
TensorStatistics computeStatistics(const at::Tensor& tensor);
std::vector<std::int64_t> computeHistogram(const at::Tensor& tensor, int bins);
/// A NaN or an infinity among the elements.
bool hasBadNumber(const at::Tensor& tensor);

}  // namespace retrograd

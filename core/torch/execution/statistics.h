#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/base/tensor_statistics.h"

namespace retrograd {

/// One pass over the elements, on the GPU for a tensor that is there; complex tensors by absolute value.
TensorStatistics computeStatistics(const at::Tensor& tensor);
/// Counts of `bins` equal cells between the least and the greatest finite element; two passes, as the cells need both.
std::vector<std::int64_t> computeHistogram(const at::Tensor& tensor, int bins);
/// Counts by power of two, in the cells that cuda::Summary::magnitudes has; with the statistics in one pass on a GPU.
std::vector<std::int64_t> computeMagnitudes(const at::Tensor& tensor);
/// A NaN or an infinity among the elements.
bool hasBadNumber(const at::Tensor& tensor);

}  // namespace retrograd

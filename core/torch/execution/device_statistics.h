#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/tensor_statistics.h"
#include "core/torch/execution/cuda/interface.h"

namespace retrograd {

struct DeviceSummary {
  TensorStatistics statistics;
  std::vector<std::int64_t> magnitudes;  ///< cuda::magnitudeCells of them
};

/// What one pass of our own kernel finds, for a strided tensor on a GPU; nullopt elsewhere, and where
/// libretrograd_cuda.so is not there. Throws Error(execution) where the GPU fails.
std::optional<DeviceSummary> summariseOnDevice(const at::Tensor& tensor);

/// Likewise the counts of computeHistogram(), after a pass for the bounds.
std::optional<std::vector<std::int64_t>> histogramOnDevice(const at::Tensor& tensor, int bins);

}  // namespace retrograd

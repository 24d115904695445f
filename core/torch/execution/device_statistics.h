#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/tensor_statistics.h"
#include "core/torch/execution/cuda/summaries.h"

namespace retrograd {

/// The GPU whose kernels make the statistics of a tensor there; null for one on the CPU, and where there are no
/// kernels. Throws Error(execution).
cuda::Gpu* gpuOf(const at::Tensor& tensor);

/// What one pass of our own kernels finds on `gpu`, which has the memory; nullopt for a tensor that they cannot take.
/// Throw Error(execution) where the GPU fails.
std::optional<TensorStatistics> summariseOnDevice(cuda::Gpu& gpu, const Footprint& footprint);
std::optional<std::vector<std::int64_t>> magnitudesOnDevice(cuda::Gpu& gpu, const Footprint& footprint);
/// Likewise the counts of computeHistogram(), after a pass for the bounds.
std::optional<std::vector<std::int64_t>> histogramOnDevice(cuda::Gpu& gpu, const Footprint& footprint, int bins);

}  // namespace retrograd

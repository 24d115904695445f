#pragma once
#include "core/torch/experiments/compare_runs.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// The numbers of a RunDifference: how far two tensors are apart, in double precision. Equal infinities, and NaN in the
/// same places, agree.
RunDifference differenceOf(const TensorData& a, const TensorData& b);

}  // namespace retrograd

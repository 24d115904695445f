#pragma once
#include "core/base/tensor_meta.h"

namespace retrograd {

inline constexpr std::size_t maxRank = 64;  ///< PyTorch's own limit for many kernels

/// Throws Error(badInput) for a tensor of more than 2^63 bytes or whose last element lies beyond them. Sizes, strides
/// and offset must not be negative.
void checkExtent(const TensorMeta& meta);

}  // namespace retrograd

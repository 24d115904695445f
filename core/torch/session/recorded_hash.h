#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retrograd {

/// The hash of a tensor as recordings have it (docs/recording-format.md); a sparse tensor's is that of its parts.
std::uint64_t recordedHashOf(const at::Tensor& tensor);

}  // namespace retrograd

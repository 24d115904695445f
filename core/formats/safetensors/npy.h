#pragma once
#include <string>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// Writes a contiguous tensor as NumPy's .npy, format 1.0, little-endian; whole or not at all. Throws Error(badUse)
/// where it is not contiguous or NumPy has no such dtype (bfloat16, the 8-bit floats), Error(io).
void writeNpy(const std::string& path, const TensorData& tensor);

}  // namespace retrograd

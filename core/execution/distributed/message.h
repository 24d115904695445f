#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// Named tensors as bytes: what a stage sends. Elements lie dense in row-major order, each tensor's first one at a multiple of 64 bytes, so that the
/// receiver uses them where they are. Names, dtypes and sizes are part of it, so nothing has to be agreed on. Throws Error(badUse) for a
/// tensor that is not strided or has lazy bits set.
std::vector<std::byte> encodeMessage(const TensorMap& tensors);

/// The tensors of a message, in its memory, which they keep alive. Throws Error(badInput) for bytes that are none.
TensorMap decodeMessage(std::shared_ptr<const std::vector<std::byte>> message);

/// The elements of a strided tensor in row-major order; `out` holds meta.bytes().
void packDense(const TensorData& tensor, std::span<std::byte> out);

}  // namespace retrograd

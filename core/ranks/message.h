#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// What a stage sends: tensors in the message itself, and some of which it only says that they follow on another way
/// (DeviceLink), in the order of their names.
struct Message {
  TensorMap tensors;
  std::map<std::string, TensorMeta> announced;  ///< dtypes and sizes; a name is in one of the two
};

/// As bytes. Elements lie dense in row-major order, each tensor's first one at a multiple of 64 bytes, so that the
/// receiver uses them where they are. Names, dtypes and sizes are part of it, so nothing has to be agreed on. Throws
/// Error(badUse) for a tensor that is not strided, has lazy bits set or lies on a GPU.
std::vector<std::byte> encodeMessage(const Message& message);

/// The message; its tensors lie in the memory of `bytes`, which they keep alive. Throws Error(badInput) for bytes that
/// are none.
Message decodeMessage(const std::shared_ptr<const std::vector<std::byte>>& bytes);

/// The elements of a strided tensor in row-major order; `out` holds meta.bytes().
void packDense(const TensorData& tensor, std::span<std::byte> out);

}  // namespace retrograd

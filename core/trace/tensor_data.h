#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// Bytes of a tensor without LibTorch: a region of a mapped file or of memory, kept alive by `owner`.
/// `data` points at the storage's first byte; meta.offset and strides apply to it. Read only.
struct TensorData {
  TensorMeta meta;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;               ///< of the storage
  std::shared_ptr<const void> owner;
};
using TensorMap = std::map<std::string, TensorData>;

}  // namespace retrograd

#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// Bytes of a tensor without LibTorch: a region of a mapped file or of memory, kept alive by `owner`.
/// `data` points at the storage's first byte; meta.offset and strides apply to it. Read only. The memory is the host's,
/// wherever meta says that the value belongs, except between the stages of a pipeline on a GPU.
struct TensorData {
  TensorMeta meta;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< of the storage
  std::shared_ptr<const void> owner;
  Device memory = {};  ///< whose it is; only LibTorch reads that of a GPU
};
using TensorMap = std::map<std::string, TensorData>;

}  // namespace retrograd

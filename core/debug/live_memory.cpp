#include "core/debug/live_memory.h"

#include <ATen/core/Tensor.h>

namespace retrograd {
namespace {

/// A strided tensor's storage; a sparse tensor counts as one block of its own.
std::pair<const void*, std::int64_t> memoryOf(const at::Tensor& tensor) {
  if (tensor.has_storage()) return {tensor.storage().unsafeGetStorageImpl(), static_cast<std::int64_t>(tensor.storage().nbytes())};
  return {tensor.unsafeGetTensorImpl(), 0};
}

}  // namespace

std::int64_t LiveMemory::add(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return 0;
  const auto [key, bytes] = memoryOf(value.toTensor());
  auto& entry = storages_[key];
  if (entry.uses++ > 0) return 0;
  entry.bytes = bytes;
  bytes_ += bytes;
  peak_ = std::max(peak_, bytes_);
  return bytes;
}

void LiveMemory::remove(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return;
  const auto it = storages_.find(memoryOf(value.toTensor()).first);
  if (it == storages_.end() || --it->second.uses > 0) return;
  bytes_ -= it->second.bytes;
  storages_.erase(it);
}

}  // namespace retrograd

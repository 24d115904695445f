#include "core/torch/session/live_memory.h"

#include <ATen/core/Tensor.h>

namespace retrograd {
namespace {

/// A strided tensor's storage; a sparse tensor counts as one block of its own.
std::pair<const void*, std::int64_t> memoryOf(const at::Tensor& tensor) {
  if (tensor.has_storage())
    return {tensor.storage().unsafeGetStorageImpl(), static_cast<std::int64_t>(tensor.storage().nbytes())};
  return {tensor.unsafeGetTensorImpl(), 0};
}

bool hasMemory(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }

}  // namespace

/// Null for what has no memory; a new entry for a storage that is not known.
LiveMemory::Entry* LiveMemory::entryOf(const c10::IValue& value) {
  if (!hasMemory(value)) return nullptr;
  const auto [key, bytes] = memoryOf(value.toTensor());
  auto& entry = storages_[key];
  if (entry.uses == 0 && entry.keeps == 0) entry.bytes = entry.excluded ? 0 : bytes;
  return &entry;
}

LiveMemory::Storages::iterator LiveMemory::find(const c10::IValue& value) {
  return hasMemory(value) ? storages_.find(memoryOf(value.toTensor()).first) : storages_.end();
}

void LiveMemory::forget(Storages::iterator it) {
  if (it->second.uses == 0 && it->second.keeps == 0 && !it->second.excluded) storages_.erase(it);
}

std::int64_t LiveMemory::add(const c10::IValue& value) {
  auto* entry = entryOf(value);
  if (!entry || entry->uses++ > 0) return 0;
  if (entry->keeps > 0) keptBytes_ -= entry->bytes;
  bytes_ += entry->bytes;
  peak_ = std::max(peak_, bytes_);
  return entry->bytes;
}

void LiveMemory::remove(const c10::IValue& value) {
  const auto it = find(value);
  if (it == storages_.end() || it->second.uses == 0) return;
  --it->second.uses;
  if (it->second.uses > 0) return;
  bytes_ -= it->second.bytes;
  if (it->second.keeps > 0) keptBytes_ += it->second.bytes;
  forget(it);
}

void LiveMemory::keep(const c10::IValue& value) {
  auto* entry = entryOf(value);
  if (!entry || entry->keeps++ > 0) return;
  if (entry->uses == 0) keptBytes_ += entry->bytes;
}

void LiveMemory::drop(const c10::IValue& value) {
  const auto it = find(value);
  if (it == storages_.end() || it->second.keeps == 0) return;
  --it->second.keeps;
  if (it->second.keeps > 0) return;
  if (it->second.uses == 0) keptBytes_ -= it->second.bytes;
  forget(it);
}

bool LiveMemory::isHeld(const c10::IValue& value) const {
  const auto it = hasMemory(value) ? storages_.find(memoryOf(value.toTensor()).first) : storages_.end();
  return it != storages_.end() && it->second.uses > 0;
}

void LiveMemory::exclude(const c10::IValue& value) {
  auto* entry = entryOf(value);
  if (!entry || entry->excluded) return;
  entry->excluded = true;
  entry->bytes = 0;
  if (value.toTensor().has_storage()) entry->anchor = value.toTensor().storage().getWeakStorageImpl();
}

}  // namespace retrograd

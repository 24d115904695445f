#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <unordered_map>

namespace retrograd {

/// Copies of tensors that share memory as the tensors do: one copy for each storage.
class StorageCopies {
 public:
  /// A value that is not a tensor, or an undefined one, is returned as it is.
  c10::IValue copyOf(const c10::IValue& value);

 private:
  std::unordered_map<const void*, c10::Storage> copies_;
};

/// What a tensor's memory is known by; null for what has none.
const void* memoryKey(const c10::IValue& value);

}  // namespace retrograd

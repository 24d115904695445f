#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <unordered_map>

namespace retrograd {

/// What a tensor's memory is known by; null for what has none.
const void* memoryKey(const c10::IValue& value);

/// Copies of tensors that share memory as the tensors do: one copy for each storage.
class StorageCopies {
 public:
  /// A value that is not a tensor, or an undefined one, is returned as it is.
  c10::IValue copyOf(const c10::IValue& value) { return copyOf(value, memoryKey(value)); }
  /// Tensors of one key become views of one copy, also where each brings a storage of its own with the same content.
  c10::IValue copyOf(const c10::IValue& value, const void* key);
  /// The copy for this key goes into the memory that the tensor has, where it has the size.
  void reuse(const at::Tensor& tensor, const void* key);

 private:
  struct Copy {
    c10::Storage storage;
    bool isFilled = false;
  };
  std::unordered_map<const void*, Copy> copies_;
};

}  // namespace retrograd

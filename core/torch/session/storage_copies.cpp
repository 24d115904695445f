#include "core/torch/session/storage_copies.h"

#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "core/torch/tracing/lay_out.h"

namespace retrograd {
namespace {

at::Tensor viewOfCopy(const at::Tensor& tensor, const c10::Storage& copy) {
  auto view = at::empty({0}, tensor.options()).set_(copy, tensor.storage_offset(), tensor.sizes(), tensor.strides());
  view._set_conj(tensor.is_conj());
  view._set_neg(tensor.is_neg());
  return view;
}

}  // namespace

const void* memoryKey(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().has_storage()) return nullptr;
  return value.toTensor().storage().unsafeGetStorageImpl();
}

c10::IValue StorageCopies::copyOf(const c10::IValue& value, const void* key) {
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  const auto& tensor = value.toTensor();
  if (tensor.layout() != at::kStrided || !tensor.has_storage()) return tensor.clone();
  auto& copy = copies_[key];
  if (!copy.storage || copy.storage.nbytes() != tensor.storage().nbytes())
    copy = {wholeStorage(tensor).clone().storage(), true};
  if (!copy.isFilled) wholeStorage(viewOfCopy(tensor, copy.storage)).copy_(wholeStorage(tensor));
  copy.isFilled = true;
  return viewOfCopy(tensor, copy.storage);
}

void StorageCopies::reuse(const at::Tensor& tensor, const void* key) {
  if (tensor.defined() && tensor.layout() == at::kStrided && tensor.has_storage())
    copies_[key] = {tensor.storage(), false};
}

}  // namespace retrograd

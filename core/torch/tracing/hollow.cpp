#include "core/torch/tracing/hollow.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/DispatchKeySet.h>

#include <algorithm>

#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/interceptor.h"

namespace retrograd {

ValueTag* tagOf(const at::Tensor& tensor, std::uint64_t owner) {
  if (!tensor.defined()) return nullptr;
  auto* tag = dynamic_cast<ValueTag*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
  return tag && tag->owner == owner ? tag : nullptr;
}

at::Tensor makeHollow(const at::Tensor& twin, c10::Device device, const at::Tensor* base) {
  c10::Storage storage;
  if (base) {
    storage = base->storage();
  } else {
    storage = c10::Storage(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), twin.storage().nbytes(), c10::DataPtr(nullptr, device), nullptr, false));
    storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(
        std::string("this op reads the data of a tensor while shapes alone are traced"));
  }
  const auto backend = device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  auto keys = c10::DispatchKeySet(backend) |
              c10::getAutogradRelatedKeySetFromBackend(c10::toBackendComponent(backend)) |
              c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
  if (twin.is_neg()) keys = keys.add(c10::DispatchKey::Negative);
  if (twin.is_conj()) keys = keys.add(c10::DispatchKey::Conjugate);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, twin.dtype());
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_offset(twin.storage_offset());
  impl->set_sizes_and_strides(twin.sizes(), twin.strides());
  if (twin.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return tensor;
}

at::Tensor makeMeta(const TensorMeta& meta, std::int64_t memoryBytes) {
  BelowInterception below;
  const auto options = at::TensorOptions().dtype(toScalarType(meta.dtype)).device(at::kMeta);
  at::Tensor tensor;
  const auto bytes = std::max(memoryBytes, meta.storageBytes());
  if (meta.offset == 0 && bytes == meta.storageBytes()) {
    tensor = at::empty_strided(meta.sizes, meta.strides, options);
  } else {  // the storage reaches back to offset 0: view formulas look at it
    tensor = at::empty_strided({bytes / itemSize(meta.dtype)}, {1}, options)
                 .as_strided(meta.sizes, meta.strides, meta.offset);
  }
  if (meta.conjugate) tensor = tensor._conj();
  if (meta.negative) tensor = tensor._neg_view();
  if (meta.wrappedNumber) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor makeMetaLike(const at::Tensor& tensor) {
  BelowInterception below;
  auto twin =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta).requires_grad(false));
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) twin.unsafeGetTensorImpl()->set_wrapped_number(true);
  return twin;
}

}  // namespace retrograd

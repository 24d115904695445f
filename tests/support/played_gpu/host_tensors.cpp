#include "tests/support/played_gpu/host_tensors.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <mutex>

#include "tests/support/played_gpu/driver_account.h"

namespace retrograd::test {
namespace {

const c10::Device gpu(c10::kCUDA, 0);

struct Owned {
  void* memory;
  std::size_t bytes;
  std::function<void()> release;
};

std::mutex mutex;
PlayedMemory memory;

void let(void* context) {
  const std::unique_ptr<Owned> owned(static_cast<Owned*>(context));
  {
    const std::lock_guard lock(mutex);
    memory.bytes -= static_cast<std::int64_t>(owned->bytes);
  }
  driverAccount().released(owned->memory);
  owned->release();
}

/// A tensor with the properties of another one in other memory.
at::Tensor likeIn(const at::Tensor& tensor, const c10::Storage& storage, c10::DispatchKey key) {
  auto like = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), tensor.dtype());
  auto* impl = like.unsafeGetTensorImpl();
  impl->set_storage_offset(tensor.storage_offset());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  like._set_conj(tensor.is_conj());
  like._set_neg(tensor.is_neg());
  return like;
}

}  // namespace

PlayedMemory playedMemory() {
  const std::lock_guard lock(mutex);
  return memory;
}

c10::DataPtr onPlayedGpu(void* at, std::size_t bytes, std::function<void()> release) {
  {
    const std::lock_guard lock(mutex);
    memory.bytes += static_cast<std::int64_t>(bytes);
    memory.peak = std::max(memory.peak, memory.bytes);
  }
  driverAccount().taken(at, bytes);
  return {at, new Owned{at, bytes, std::move(release)}, let, gpu};
}

c10::Storage HostTensors::hostOf(const c10::Storage& storage) {
  auto& found = hostStorages_[storage.unsafeGetStorageImpl()];
  if (!found) {
    auto* keeps = new c10::Storage(storage);
    c10::DataPtr memory(
        storage.mutable_data_ptr().get(), keeps, [](void* kept) { delete static_cast<c10::Storage*>(kept); },
        c10::kCPU);
    found = c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(memory),
                         c10::GetAllocator(c10::kCPU), storage.resizable());
    deviceStorages_.emplace(found.unsafeGetStorageImpl(), storage);
  }
  return found;
}

c10::Storage HostTensors::deviceOf(const c10::Storage& storage) {
  auto& found = deviceStorages_[storage.unsafeGetStorageImpl()];
  if (!found) {
    auto memory = onPlayedGpu(storage.mutable_data_ptr().get(), storage.nbytes(), [storage] {});
    found = c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(memory),
                         c10::GetAllocator(c10::kCUDA), true);
  }
  return found;
}

at::Tensor HostTensors::hostOf(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda() || !tensor.has_storage()) return tensor;
  auto& pair = byDevice_[tensor.unsafeGetTensorImpl()];
  if (!pair.host.defined()) {
    pair = {tensor, likeIn(tensor, hostOf(tensor.storage()), c10::DispatchKey::CPU)};
    byHost_.emplace(pair.host.unsafeGetTensorImpl(), pair);
  }
  return pair.host;
}

at::Tensor HostTensors::deviceOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (const auto known = byHost_.find(tensor.unsafeGetTensorImpl()); known != byHost_.end())
    return known->second.device;
  if (!tensor.has_storage()) return tensor;
  return likeIn(tensor, deviceOf(tensor.storage()), c10::DispatchKey::CUDA);
}

c10::IValue HostTensors::toHost(const c10::IValue& argument) {
  if (argument.isTensor()) return hostOf(argument.toTensor());
  if (argument.isStorage()) return hostOf(argument.toStorage());
  if (argument.isDevice()) return argument.toDevice().is_cuda() ? c10::Device(c10::kCPU) : argument.toDevice();
  if (argument.isTensorList()) {
    c10::List<at::Tensor> tensors;
    for (const at::Tensor tensor : argument.toTensorList()) tensors.push_back(hostOf(tensor));
    return tensors;
  }
  if (argument.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const std::optional<at::Tensor> tensor : argument.toOptionalTensorList())
      tensors.push_back(tensor ? std::optional(hostOf(*tensor)) : std::nullopt);
    return tensors;
  }
  return argument;
}

c10::IValue HostTensors::toDevice(const c10::IValue& result) {
  if (result.isTensor()) return deviceOf(result.toTensor());
  if (!result.isTensorList()) return result;
  c10::List<at::Tensor> tensors;
  for (const at::Tensor tensor : result.toTensorList()) tensors.push_back(deviceOf(tensor));
  return tensors;
}

void HostTensors::writeBack() {
  for (auto& [impl, pair] : byDevice_) {
    auto& [device, host] = pair;
    const auto storage = deviceOf(host.storage());
    if (storage.unsafeGetStorageImpl() != device.storage().unsafeGetStorageImpl())
      impl->set_storage_keep_dtype(storage);             // set_
    else if (host.storage().data() != storage.data()) {  // resize_
      const auto kept = host.storage();
      storage.set_data_ptr_noswap(onPlayedGpu(kept.mutable_data_ptr().get(), kept.nbytes(), [kept] {}));
      storage.set_nbytes(kept.nbytes());
    }
    if (device.sizes() == host.sizes() && device.strides() == host.strides() &&
        device.storage_offset() == host.storage_offset())
      continue;
    impl->set_storage_offset(host.storage_offset());
    impl->set_sizes_and_strides(host.sizes(), host.strides());
  }
}

}  // namespace retrograd::test

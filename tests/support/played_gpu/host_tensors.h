#pragma once
#include <ATen/core/ivalue.h>

#include <unordered_map>

namespace retrograd::test {

/// Tensors of the played GPU as tensors of the CPU, for one call of an op. A tensor of the CPU lies in the same memory;
/// tensors that share memory still do.
class HostTensors {
 public:
  /// An argument of the call with its tensors, storages and devices on the CPU.
  c10::IValue toHost(const c10::IValue& argument);
  /// A result of the call, or a list of them: an argument itself where the op returns one, a view of an argument's
  /// memory, or a tensor of the GPU that takes over what the op made.
  c10::IValue toDevice(const c10::IValue& result);
  /// After the call: sizes and memory that the op gave to its arguments.
  void writeBack();

 private:
  struct Pair {
    at::Tensor device, host;
  };
  at::Tensor hostOf(const at::Tensor& tensor);
  c10::Storage hostOf(const c10::Storage& storage);
  at::Tensor deviceOf(const at::Tensor& tensor);
  c10::Storage deviceOf(const c10::Storage& storage);

  std::unordered_map<c10::TensorImpl*, Pair> byDevice_, byHost_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> hostStorages_, deviceStorages_;
};

/// Bytes that tensors of the played GPU have, now and at most.
struct PlayedMemory {
  std::int64_t bytes = 0, peak = 0;
};
PlayedMemory playedMemory();
/// Memory of the played GPU.
c10::DataPtr onPlayedGpu(void* memory, std::size_t bytes, std::function<void()> release);

}  // namespace retrograd::test

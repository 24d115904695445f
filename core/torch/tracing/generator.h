#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// State of LibTorch's default generator of a device, as ops without a generator of their own draw from it.
at::Tensor generatorState(c10::Device device = c10::kCPU);
void setGeneratorState(const at::Tensor& state, c10::Device device = c10::kCPU);
/// The state that `manual_seed(seed)` makes, without touching the default generator.
at::Tensor seededState(std::uint64_t seed, c10::Device device = c10::kCPU);

/// A tensor of this dtype and shape: floating and complex ones normally distributed, integers and truths 0 or 1.
at::Tensor drawTensor(const TensorMeta& meta, at::Generator& generator);

/// Puts the default generator of the device back as it was when the scope ends.
class KeepGenerator {
 public:
  explicit KeepGenerator(c10::Device device = c10::kCPU) : device_(device), state_(generatorState(device)) {}
  /// Seeds it until then.
  explicit KeepGenerator(std::uint64_t seed, c10::Device device = c10::kCPU) : KeepGenerator(device) {
    setGeneratorState(seededState(seed, device), device);
  }
  ~KeepGenerator() { setGeneratorState(state_, device_); }
  KeepGenerator(const KeepGenerator&) = delete;
  KeepGenerator& operator=(const KeepGenerator&) = delete;

 private:
  c10::Device device_;
  at::Tensor state_;
};

}  // namespace retrograd

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retrograd {

/// State of LibTorch's default CPU generator, as ops without a generator of their own draw from it.
at::Tensor generatorState();
void setGeneratorState(const at::Tensor& state);
/// The state that `manual_seed(seed)` makes, without touching the default generator.
at::Tensor seededState(std::uint64_t seed);

/// Puts the default generator back as it was when the scope ends.
class KeepGenerator {
 public:
  KeepGenerator() : state_(generatorState()) {}
  ~KeepGenerator() { setGeneratorState(state_); }
  KeepGenerator(const KeepGenerator&) = delete;
  KeepGenerator& operator=(const KeepGenerator&) = delete;

 private:
  at::Tensor state_;
};

}  // namespace retrograd

#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// State of LibTorch's default CPU generator, as ops without a generator of their own draw from it.
at::Tensor generatorState();
void setGeneratorState(const at::Tensor& state);
/// The state that `manual_seed(seed)` makes, without touching the default generator.
at::Tensor seededState(std::uint64_t seed);

/// A tensor of this dtype and shape: floating and complex ones normally distributed, integers and truths 0 or 1.
at::Tensor drawTensor(const TensorMeta& meta, at::Generator& generator);

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

#include "core/torch/tracing/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <mutex>

#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator_states.h"
#include "core/torch/tracing/interceptor.h"

namespace retrograd {

namespace {

at::Generator defaultGenerator(c10::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

}  // namespace

at::Tensor generatorState(c10::Device device) {
  BelowInterception below;
  auto generator = defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void setGeneratorState(const at::Tensor& state, c10::Device device) {
  BelowInterception below;
  auto generator = defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

at::Tensor seededState(std::uint64_t seed, c10::Device device) {
  BelowInterception below;
  if (const auto recorded = device.is_cpu() ? recordedState(seed) : at::Tensor(); recorded.defined()) return recorded;
  if (device.is_cpu()) return at::detail::createCPUGenerator(seed).get_state();
  auto generator = defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator.get_state();
}

at::Tensor drawTensor(const TensorMeta& meta, at::Generator& generator) {
  const auto type = toScalarType(meta.dtype);
  if (isDifferentiable(meta.dtype)) {
    const auto wide = isComplex(meta.dtype) ? at::kComplexDouble : at::kDouble;
    return at::randn(meta.sizes, generator, at::TensorOptions().dtype(wide)).to(type);
  }
  return at::randint(0, 2, meta.sizes, generator, at::TensorOptions().dtype(at::kLong)).to(type);
}

}  // namespace retrograd

#include "core/tracing/generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "core/tracing/interceptor.h"

namespace retrograd {

at::Tensor generatorState() {
  BelowInterception below;
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void setGeneratorState(const at::Tensor& state) {
  BelowInterception below;
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

at::Tensor seededState(std::uint64_t seed) {
  BelowInterception below;
  return at::detail::createCPUGenerator(seed).get_state();
}

}  // namespace retrograd

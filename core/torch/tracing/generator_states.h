#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retrograd {

/// The state behind a seed that seedOfState (recorded_generator.h) made; an undefined tensor for any other seed.
at::Tensor recordedState(std::uint64_t seed);

}  // namespace retrograd

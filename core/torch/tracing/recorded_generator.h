#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// The state that a generator had in somebody's training loop, in place of a seed: for as long as the program runs,
/// drawing from the seed that is returned begins at that state (generator.h, seededState). The seed is a hash of the
/// state, so that the same state has the same seed. Throws Error(badInput) where the bytes are no state of LibTorch's
/// generator on the CPU (`torch.get_rng_state()`).
std::uint64_t seedOfState(const TensorData& state);
/// The same for a state as text (stateAsText).
std::uint64_t seedOfState(const std::string& text);

/// The state behind a seed as text, to keep in a file; nothing for a seed that is a number of its own.
std::optional<std::string> stateAsText(std::uint64_t seed);

}  // namespace retrograd

#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// States that generators had in somebody's training loop.
struct GeneratorStates {
  std::optional<TensorData> cpu;            ///< `torch.get_rng_state()`
  std::map<std::int32_t, TensorData> gpus;  ///< `torch.cuda.get_rng_state(N)`: a seed and an offset
};

/// These states instead of a seed: for as long as the program runs, drawing from the seed that is returned begins at
/// them (generator.h, seededState). The seed is a hash of the states, so that the same states have the same seed.
/// Throws Error(badInput) where there is none of the CPU, and where bytes are not a state of LibTorch's generators.
std::uint64_t seedOfStates(const GeneratorStates& states);
/// The same for states as text (statesAsText).
std::uint64_t seedOfStates(const std::string& text);

/// The states behind a seed as text, to keep in a file; nothing for a seed that is a number of its own.
std::optional<std::string> statesAsText(std::uint64_t seed);

}  // namespace retrograd

#pragma once
#include <optional>

#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

/// The program of this seed, always the same; nullopt where what came of it is not worth running (too short, or no
/// output that is a tensor).
std::optional<Program> generate(std::uint64_t seed);

/// What a program has, for the figures: "write through a view", "cond", "f32", "order 2", ...
std::vector<std::string> featuresOf(const Program& program);
/// All features that are held to one program in a hundred.
const std::vector<std::string>& allFeatures();

}  // namespace retrograd::fuzz

#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// "in.x" for a user input, else `prefix` and the target: "p.weight", "b.running_mean".
std::string resultKey(const InputSpec& input, const std::string& prefix);

/// Position among the user outputs as text, for output i of the computation; empty for other outputs.
std::string userOutputPosition(const Computation& computation, std::size_t i);

/// What a run writes in place, "b.<buffer>" and "in.<input>", with the value that holds the content at the forward's
/// end.
std::map<std::string, ValueId> mutatedValues(const Analysis& analysis);

/// The data behind input i of the computation; null for tokens, objects, numbers, and where the file has none.
const TensorData* inputData(const Analysis& analysis, std::size_t i);

}  // namespace retrograd

#pragma once
#include <map>
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

/// "in.x" for a user input, else `prefix` and the target: "p.weight", "b.running_mean".
std::string resultKey(const InputSpec& input, const std::string& prefix);

/// What a run writes in place, "b.<buffer>" and "in.<input>", with the value that holds the content at the forward's
/// end.
std::map<std::string, ValueId> mutatedValues(const Analysis& analysis);

/// The data behind input i of the computation; null for tokens, objects, numbers, and where the file has none.
const TensorData* inputData(const Analysis& analysis, std::size_t i);

}  // namespace retrograd

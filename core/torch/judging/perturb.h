#pragma once
#include <cstdint>

#include "core/derivation/analysis.h"

namespace retrograd {

/// A tensor whose elements each moved to a neighbour that their dtype can hold, up or down as `seed` says: what
/// rounding could have made of them. Elements that few bits hold exactly (0, 1, -0.5, masks), NaN and infinities stay,
/// as do integers.
TensorData moveByOneStep(const TensorData& tensor, std::uint64_t seed);

/// The analysis with weights, inputs and cotangents moved like that; tied weights stay tied. `movesHalves`: also those
/// of 16 bits, whose steps are large.
std::shared_ptr<const Analysis> movedByOneStep(const Analysis& analysis, std::uint64_t seed, bool movesHalves = true);

}  // namespace retrograd

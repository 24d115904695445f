#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// For each op of a's joint the matching op of b's; none where b has none. Ops are put together by what they come from:
/// the computation op (its name in the file, or its place), role, operand, output. Among those of one origin the order
/// decides, so that as many as possible of the same kind, and of these as many as possible of equal shape, are
/// paired; what the other lacks (a conversion, an op of another decomposition) is alone. The traces may
/// be of different precision, partition, weights or file.
std::vector<std::optional<std::size_t>> alignOps(const Analysis& a, const Analysis& b);

}  // namespace retrograd

#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/trace/diff/op_pairs.h"

namespace retrograd {

/// A trace of the analysis as one side of an alignment. Ops of a recording are in the part of the run that they ran in:
/// its step, backward and phase.
DiffSide diffSide(const Analysis& analysis, const Trace& trace);

/// For each op of a's joint the matching op of b's, as OpPairs has them; none where b has none. The traces may be of
/// different precision, partition, weights or file.
std::vector<std::optional<std::size_t>> alignOps(const Analysis& a, const Analysis& b);

}  // namespace retrograd

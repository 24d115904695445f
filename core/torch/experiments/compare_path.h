#pragma once
#include "core/torch/experiments/compare_own.h"
#include "core/torch/experiments/compare_runs.h"

namespace retrograd {

/// What came into each row, and how it was enlarged: fills RunDifference::inherited, own, budget and enlarged.
/// `positions`: of the second's op, by row.
void addFigures(RunComparison& comparison, const std::vector<std::size_t>& positions, const OwnErrors& own,
                const Analysis& b);

/// From the op that is to blame to the loss, or what else is left and differs; where nobody is to blame, to the first
/// value that is beyond `tolerance`. Along the operands that differ most.
ErrorPath pathOf(const RunComparison& comparison, const OwnErrors& own, const Analysis& a, double tolerance);

}  // namespace retrograd

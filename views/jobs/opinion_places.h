#pragma once
#include "core/derivation/analysis.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd::views {

/// The op of the derived backward that does what the place's op does in the job's own: of those that lead to its
/// gradient and come from its line of Python, the last of the same kind, else the last. Where no op comes from that
/// line it is the op that makes the gradient. None where that is not known.
BoundSymbolId derivedOp(const Analysis& analysis, const BackwardPlace& place);

}  // namespace retrograd::views

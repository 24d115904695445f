#pragma once
#include <map>

#include "core/derivation/analysis.h"

namespace retrograd {

/// By value of the computation what `analysis.request.filled` names. Throws Error(badUse) for a name of something else
/// and for a tensor that does not fit.
std::map<ValueId, TensorData> filledResults(const Analysis& analysis, const Document& document);

/// Sets `leftOut` of an analysis whose joint has opaque ops, and adds the problems that say which gradients and results
/// these leave out.
void noteOpaqueOps(Analysis& analysis);

}  // namespace retrograd

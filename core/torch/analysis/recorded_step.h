#pragma once
#include <memory>

#include "core/derivation/analysis.h"

namespace retrograd {

/// A recorded step as an analysis: nothing is derived, all ops are those of the recording, in their order. The forward
/// is what ran before the first backward began, the backward is the rest: further micro-batches and the optimizer, too.
/// Throws Error(badUse) for a request that changes what ran: inputs, weights, sizes, another order.
std::shared_ptr<const Analysis> analysisOfRecording(ModelFile file, const DerivationRequest& request);

}  // namespace retrograd

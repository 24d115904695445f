#pragma once
#include "core/derivation/analysis.h"
#include "core/sizes/size_expression.h"
#include "core/torch/grad/transform.h"

namespace retrograd {

/// The joint of an analysis whose inputs were chosen: gradTransform() with what they say of each input. `document`, the
/// analysis's own or a copy of it, grows. `sizes`: what the size symbols are, where not as for the inputs at hand.
/// Throws as gradTransform(), but for WritesToLeaf: such an input is left out.
JointResult deriveJoint(const Analysis& analysis, Document& document, const DerivationRequest& request,
                        RuleCache& cache, const Progress& progress = {}, const SizeBindings* sizes = nullptr);

}  // namespace retrograd

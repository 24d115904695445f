#pragma once
// From what was read to an Analysis: bind inputs, derive, split.
#include <memory>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Derives joint, forward and backward again, `repeats` times with an empty rule cache and `repeats` times with a warm
/// one.
struct DerivationTimes {
  std::vector<double> joint, jointWarm, split;  ///< seconds, one entry a repeat
};
DerivationTimes timeDerivation(const Analysis& analysis, int repeats);

/// Derives joint, forward and backward of what was read. An unknown op is opaque, with a Problem: what does not depend
/// on it is derived. Deriving for a device needs no such device; running does (torch/execution/device.h). Throws Error
/// (badInput, unsupportedOp, cancelled, ...) that names the file or the op.
std::shared_ptr<const Analysis> analyse(ModelFile file, const DerivationRequest& request = {},
                                        const Progress& progress = {});

/// analyse() that keeps the joint after each pass: after the grad transform, dead-code elimination, copy elision and,
/// where it changed anything, partitioning. Of order 1.
std::shared_ptr<const Analysis> analyseByPasses(ModelFile file, const DerivationRequest& request,
                                                std::vector<Trace>& joints, const Progress& progress = {});

/// The request under which `analysis` was derived, with the inputs and cotangents it has.
DerivationRequest requestOf(const Analysis& analysis);

}  // namespace retrograd

#pragma once
// From what was read to an Analysis: bind inputs, derive, split.
#include <memory>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/trace/trace.h"

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

/// The errors among them, in words.
std::string errorsOf(const std::vector<Problem>& problems);

/// The request under which `analysis` was derived, with the inputs and cotangents it has: the weights, the precision
/// and the device that were asked for included.
DerivationRequest requestOf(const Analysis& analysis);

/// The model of `analysis` derived again under `request`, a change of requestOf(): on the same tensors, as the same
/// derivative where its order is 2 or more, with the same marks and session file. Its document is a copy, so ids of the
/// computation stay. `results`, where given, gets what each pass made (runPasses()). Throws as analyse().
std::shared_ptr<const Analysis> deriveAgain(const Analysis& analysis, const DerivationRequest& request,
                                            std::vector<PassResult>* results = nullptr, const Progress& progress = {});

}  // namespace retrograd

#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/judge/claim.h"

namespace retrograd {

/// Parameters whose gradient is None though they require one, each with the place where the way to the loss ends.
/// Suspicions; beyond `most` of them one counts the rest, and a note
/// the frozen ones. Each costs a walk over the computation.
std::vector<Claim> missingGradients(const Analysis& analysis, std::size_t most = 20, const Progress& progress = {});

/// Parameters of equal layers ("h.0.weight", "h.1.weight", ... of one shape, three at least) whose gradient's norm is
/// more than a hundred times the median of the others, or less than a hundredth. `normOf`: of a gradient, nullopt where
/// it is not known; what is not finite is not compared. Suspicions.
std::vector<Claim> layersThatDiffer(const Analysis& analysis,
                                    const std::function<std::optional<double>(ValueId)>& normOf);

}  // namespace retrograd

#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/formats/folder/folder.h"
#include "core/judge/claim.h"

namespace retrograd {

/// Inputs of a computation by what a reference says of their gradients.
struct GradientsOfInputs {
  std::set<ValueId> wrong, right;  ///< `right`: only those whose gradient is not zero
  std::optional<double> factor;    ///< by which every wrong gradient of the reference is that of the graph, if one is
};

/// Where PyTorch's gradients part from those of a file's graph: the first op on the way back from the outputs through
/// which a gradient changes. By which gradients are wrong: the op that all inputs and parameters with a wrong gradient
/// lead to and none with a right one. Of several, one of a custom Function, else the one where a hook was registered,
/// else the last. `recorded`: what a recorded folder says. A fault of the kind "custom-backward" (its subject is the
/// Function), "hook" or "gradients-part"; nothing where no op fits.
std::optional<Claim> whereGradientsPart(const Analysis& analysis, const GradientsOfInputs& gradients,
                                        const std::vector<CustomBackward>& recorded);

}  // namespace retrograd

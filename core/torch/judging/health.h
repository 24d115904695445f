#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"
#include "core/judge/claim.h"

namespace retrograd {

/// A fault for each tensor with NaN or infinities, behind the ops and inputs that they come from: whether a run is
/// sound, apart from whether it agrees with PyTorch. A NaN or an infinity in the loss, a gradient, a parameter or a
/// buffer is a fault even where PyTorch has the same; elsewhere it is a note. Infinities of a mask are none
/// (questions/intended_infinities.h). Subjects are "out.0", "grad.p.w", "mut.b.mean" as a reference names results, and
/// "p.w", "b.mean" as given.
///
/// Judges a run by its results (namedResults()) and by what it was given. `expected`: names of outputs that a reference
/// holds; such an output that is not the loss may have what the reference has. `elsewhere`: some value of the run has a
/// NaN or an infinity that is not meant.
std::vector<Claim> healthOf(const Analysis& analysis, const TensorMap& run, const std::set<std::string>& expected,
                            bool elsewhere, const Progress& progress);

/// "grad.p.w has 2 NaN and 0 infinities among 4 elements", a fault; nothing where all are finite.
std::optional<Claim> notFinite(const std::string& name, const TensorData& tensor);
/// The ops that finite numbers first became something else in, in order of the run; inputs that are not finite
/// themselves. Runs the model once.
std::vector<Claim> rootsOfNonFinite(const Analysis& analysis, const Progress& progress);

}  // namespace retrograd

#pragma once
#include "core/torch/steps/step_report.h"

namespace retrograd {

/// What a claim of a step is worth beside those of a step that is right: a note where that has it, too; a fault where
/// it does not, or where the factor is another. A fault stays one.
void weighAgainst(Claim& claim, const std::vector<Claim>& right);

/// What a step and one that is right do not share: data and weights first, then cuts and books that one of them alone
/// has, ties, members of optimizers, gradients, the order of clipping and unscaling, and, where both began alike,
/// gradients of the first update that are another multiple.
/// `mine`, `right`: the claims of both, each alone. Claims that both have become notes in `mine`.
std::vector<Claim> differencesFrom(const JudgedStep& judged, std::vector<Claim>& mine, const JudgedStep& good,
                                   const std::vector<Claim>& right);

}  // namespace retrograd

#pragma once
#include <vector>

#include "core/derivation/analysis.h"
#include "core/judge/claim.h"

namespace retrograd {

/// What a recorded step began with that one which is right did not: data, with the op that reads them, and weights.
std::vector<Claim> otherBeginnings(const Analysis& mine, const Analysis& right);

/// What one loop has and the other lacks: parameters, as where two are tied in one of them, members of optimizers,
/// gradients of parameters, and another order of backward, clipping, unscaling and update.
std::vector<Claim> otherLoops(const Analysis& mine, const Analysis& right);

}  // namespace retrograd

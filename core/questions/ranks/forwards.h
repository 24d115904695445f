#pragma once
#include <cstddef>
#include <vector>

#include "core/judge/claim.h"
#include "core/questions/ranks/meetings.h"

namespace retrograd {

/// Where the forward of one rank runs an op that leads to the loss and the other one runs another: a branch that one of
/// them took. A fault, unless the forward asked its data on the host before, as code that branches on values does.
std::vector<Claim> partingForwards(const RankStep& one, const RankStep& other);

}  // namespace retrograd

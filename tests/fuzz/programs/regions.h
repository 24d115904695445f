#pragma once
#include <functional>

#include "tests/fuzz/programs/draft.h"

namespace retrograd::fuzz {

/// Regions by number, from 1: no_grad, autocast, checkpointed, cond, scan, map, while.
inline constexpr int regionKinds = 7;
double regionChance(int region);
/// Adds one; `oneOp` adds an op of any kind to the body under way. False where it did not come about.
bool addRegion(Draft& draft, int region, const std::function<void()>& oneOp);

}  // namespace retrograd::fuzz

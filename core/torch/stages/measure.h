#pragma once
#include <memory>

#include "core/cut/op_costs.h"

namespace retrograd {

/// Seconds that each top-level op of the computation takes in forward and in backward, measured by running both op by
/// op (the second run counts).
OpCosts measuredCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress = {});

}  // namespace retrograd

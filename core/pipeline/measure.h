#pragma once
#include <memory>
#include <vector>

#include "core/debug/analysis.h"

namespace retrograd {

/// Seconds that each top-level op of the computation takes in forward and backward together, measured by running both op by op (the
/// second run counts), by position in the computation's ops.
std::vector<double> timeCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress = {});

}  // namespace retrograd

#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/questions/finding.h"
#include "core/questions/update_numbers.h"

namespace retrograd {

/// What a second opinion on a recorded step finds, for the window: faults and cuts of gradients, the first update that
/// is not finite, steps that a scaler skipped. Runs the step. Throws Error(cancelled).
std::vector<Finding> judgeStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

/// Numbers of the last update of each parameter, by its name. Runs the step. Throws Error(cancelled).
std::map<std::string, UpdateNumbers> lastUpdates(const std::shared_ptr<const Analysis>& analysis,
                                                 const Progress& progress = {});

}  // namespace retrograd

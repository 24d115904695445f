#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/judge/claim.h"
#include "core/questions/update_numbers.h"

namespace retrograd {

/// The claims of the report on a recorded step (step_report.h), the worst first, for the window. Runs the step. Throws
/// Error(cancelled).
std::vector<Claim> judgeStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

/// Numbers of the last update of each parameter, by its name. Runs the step. Throws Error(cancelled).
std::map<std::string, UpdateNumbers> lastUpdates(const std::shared_ptr<const Analysis>& analysis,
                                                 const Progress& progress = {});

}  // namespace retrograd

#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"
#include "core/judge/report.h"
#include "core/questions/update_numbers.h"

namespace retrograd {

/// The report on a recorded step (step_report.h), its claims the worst first, for the window. Runs the step. Throws
/// Error(cancelled).
Report judgeStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

/// Numbers of the last update of each parameter, by its name. Runs the step. Throws Error(cancelled).
std::map<std::string, UpdateNumbers> lastUpdates(const std::shared_ptr<const Analysis>& analysis,
                                                 const Progress& progress = {});

}  // namespace retrograd

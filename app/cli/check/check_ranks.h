#pragma once
#include <string>

#include "app/cli/check/check_recording.h"
#include "core/base/progress.h"

namespace retrograd::cli {

/// Audits a folder with a recording of each rank, and prints the report. Returns the exit code.
int checkRanks(const std::string& folder, const RecordingChecks& checks, const Progress& progress);

}  // namespace retrograd::cli

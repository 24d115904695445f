#pragma once
// Norms of a run of the open model, to be compared with recorded ones.
#include "core/derivation/analysis.h"
#include "core/formats/debug_mode/debug_mode_log.h"

namespace retrograd::views {

/// As debugModeNumbers(); on the worker. In a build without LibTorch it throws Error(badUse).
DebugModeRun askDebugModeNumbers(const Analysis& analysis, const Progress& progress);

}  // namespace retrograd::views

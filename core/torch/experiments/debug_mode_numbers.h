#pragma once
#include "core/derivation/analysis.h"
#include "core/formats/debug_mode/debug_mode_log.h"

namespace retrograd {

/// Runs the joint trace and takes of every op that LibTorch dispatches the norms of its tensors, as PyTorch's DebugMode
/// does of a training step: what compareNumbers() lays a recording over. DebugModeCall::position is that of the joint's
/// op. Values are let go after their last use. Throws as recordRun().
DebugModeRun debugModeNumbers(const Analysis& analysis, const Progress& progress = {});

}  // namespace retrograd

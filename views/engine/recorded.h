#pragma once
#include "core/derivation/analysis.h"
#include "core/formats/recorded/recorded_numbers.h"

namespace retrograd::views {

/// As replayNumbers(); on the worker. In a build without LibTorch it throws Error(badUse).
RecordedRun askReplayedNumbers(const Analysis& analysis, const Progress& progress);

}  // namespace retrograd::views

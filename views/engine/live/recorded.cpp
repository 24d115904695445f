#include "views/engine/recorded.h"

#include "core/torch/experiments/replay_numbers.h"

namespace retrograd::views {

DebugModeRun askReplayedNumbers(const Analysis& analysis, const Progress& progress) {
  return replayNumbers(analysis, progress);
}

}  // namespace retrograd::views

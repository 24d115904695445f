#include "views/engine/debug_mode_numbers.h"

#include "core/torch/experiments/debug_mode_numbers.h"

namespace retrograd::views {

DebugModeRun askDebugModeNumbers(const Analysis& analysis, const Progress& progress) {
  return debugModeNumbers(analysis, progress);
}

}  // namespace retrograd::views

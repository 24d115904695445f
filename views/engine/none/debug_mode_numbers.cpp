#include "views/engine/debug_mode_numbers.h"

namespace retrograd::views {

DebugModeRun askDebugModeNumbers(const Analysis&, const Progress&) {
  throw Error(ErrorCode::badUse, "this build has no LibTorch");
}

}  // namespace retrograd::views

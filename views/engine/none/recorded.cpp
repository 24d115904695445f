#include "views/engine/recorded.h"

namespace retrograd::views {

DebugModeRun askReplayedNumbers(const Analysis&, const Progress&) {
  throw Error(ErrorCode::badUse, "this build has no LibTorch");
}

}  // namespace retrograd::views

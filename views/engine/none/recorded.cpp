#include "views/engine/recorded.h"

namespace retrograd::views {

RecordedRun askReplayedNumbers(const Analysis&, const Progress&) {
  throw Error(ErrorCode::badUse, "this build has no LibTorch");
}

}  // namespace retrograd::views

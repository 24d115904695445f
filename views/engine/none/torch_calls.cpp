#include "views/engine/torch_calls.h"

namespace retrograd::views {

namespace {

[[noreturn]] void lacksTorch() { throw Error(ErrorCode::badUse, "this build has no LibTorch"); }

}  // namespace

DebugModeRun askDebugModeNumbers(const Analysis&, const Progress&) { lacksTorch(); }

JobPasses askJobPasses(const jobs::JobLog&, const jobs::GraphChoice&, const Progress&) { lacksTorch(); }

std::vector<FollowedOp> askFollowed(const JobPasses& passes, std::size_t, BoundSymbolId) {
  return std::vector<FollowedOp>(passes.passes.size());
}

SecondOpinion askSecondOpinion(const jobs::JobLog&, const SecondOpinionRequest&, const Progress&) { lacksTorch(); }

void useThreads(int) {}

}  // namespace retrograd::views

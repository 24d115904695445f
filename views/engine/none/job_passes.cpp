#include "views/engine/job_passes.h"

namespace retrograd::views {

JobPasses askJobPasses(const jobs::JobLog&, const jobs::GraphChoice&, const Progress&) {
  throw Error(ErrorCode::badUse, "this build has no LibTorch");
}

std::vector<FollowedOp> askFollowed(const JobPasses& passes, std::size_t, BoundSymbolId) {
  return std::vector<FollowedOp>(passes.passes.size());
}

}  // namespace retrograd::views

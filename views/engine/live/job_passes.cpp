#include "views/engine/job_passes.h"

namespace retrograd::views {

JobPasses askJobPasses(const jobs::JobLog& log, const jobs::GraphChoice& choice, const Progress& progress) {
  return jobPasses(log, choice, progress);
}

std::vector<FollowedOp> askFollowed(const JobPasses& passes, std::size_t pass, BoundSymbolId op) {
  return followOp(passes, pass, op);
}

}  // namespace retrograd::views

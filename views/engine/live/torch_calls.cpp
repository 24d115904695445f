#include "views/engine/torch_calls.h"

#include "core/torch/experiments/debug_mode_numbers.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd::views {

DebugModeRun askDebugModeNumbers(const Analysis& analysis, const Progress& progress) {
  return debugModeNumbers(analysis, progress);
}

JobPasses askJobPasses(const jobs::JobLog& log, const jobs::GraphChoice& choice, const Progress& progress) {
  return jobPasses(log, choice, progress);
}

std::vector<FollowedOp> askFollowed(const JobPasses& passes, std::size_t pass, BoundSymbolId op) {
  return followOp(passes, pass, op);
}

SecondOpinion askSecondOpinion(const jobs::JobLog& log, const SecondOpinionRequest& request, const Progress& progress) {
  return secondOpinion(log, request, progress);
}

void useThreads(int count) {
  if (count > 0) setThreads(count);
}

}  // namespace retrograd::views

#pragma once
// What the passes of a compile made of its graphs, for the window.
#include "core/torch/reading/job_passes.h"

namespace retrograd::views {

/// As jobPasses(); on the worker. In a build without LibTorch it throws Error(badUse).
JobPasses askJobPasses(const jobs::JobLog& log, const jobs::GraphChoice& choice, const Progress& progress);
/// As followOp(); cheap, and for any thread.
std::vector<FollowedOp> askFollowed(const JobPasses& passes, std::size_t pass, BoundSymbolId op);

}  // namespace retrograd::views

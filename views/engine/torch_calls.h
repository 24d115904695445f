#pragma once
// What the window asks of LibTorch besides its engine. In a build without it, what runs on the worker throws
// Error(badUse).
#include "core/derivation/analysis.h"
#include "core/formats/debug_mode/debug_mode_log.h"
#include "core/torch/opinion/second_opinion.h"
#include "core/torch/reading/job_passes.h"

namespace retrograd::views {

/// As debugModeNumbers(), norms of a run of the open model to be compared with recorded ones; on the worker.
DebugModeRun askDebugModeNumbers(const Analysis& analysis, const Progress& progress);
/// As jobPasses(), what the passes of a compile made of its graphs; on the worker.
JobPasses askJobPasses(const jobs::JobLog& log, const jobs::GraphChoice& choice, const Progress& progress);
/// As followOp(); cheap, and for any thread.
std::vector<FollowedOp> askFollowed(const JobPasses& passes, std::size_t pass, BoundSymbolId op);
/// As secondOpinion() on a job; on the worker.
SecondOpinion askSecondOpinion(const jobs::JobLog& log, const SecondOpinionRequest& request, const Progress& progress);
/// How many threads the kernels use of what is run from the calling thread on; 0 changes nothing. Without LibTorch
/// nothing.
void useThreads(int count);

}  // namespace retrograd::views

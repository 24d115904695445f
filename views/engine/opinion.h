#pragma once
// The second opinion on a job, for the window.
#include "core/torch/opinion/second_opinion.h"

namespace retrograd::views {

/// As secondOpinion(); on the worker. In a build without LibTorch it throws Error(badUse).
SecondOpinion askSecondOpinion(const jobs::JobLog& log, const SecondOpinionRequest& request, const Progress& progress);

}  // namespace retrograd::views

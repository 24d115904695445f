#pragma once
#include "core/judge/report.h"
#include "core/torch/steps/step_opinion.h"

namespace retrograd {

/// A recorded step that ran again, with what it was recorded in.
struct JudgedStep {
  std::shared_ptr<const Analysis> analysis;
  ReplayedStep step;
};
/// Runs the step (replayWithOpinion()). Throws Error(cancelled).
JudgedStep runStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

/// All that is claimed of a recorded step: the error that ended it, gradients that are not the derivative, the books,
/// health, hashes. What it promises is that the gradient of each parameter that an optimizer read was compared; each
/// one that was not has its reason. `good`: a recorded step that is right, what it has, too, is meant (against.h); may
/// be null.
Report reportOf(const JudgedStep& judged, const JudgedStep* good = nullptr);

/// The exception that ended a recording, with the answer that the recorder found. Its line is that of the op to change,
/// where one is named.
Claim claimOfError(const Document& document, const StepRecording& recording);

/// What a cut is by itself: a fault where it is surely one, else a suspicion.
Claim claimOf(const GradientCut& cut, const StepRecording& recording);

}  // namespace retrograd

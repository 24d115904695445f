#pragma once
#include "core/derivation/analysis.h"
#include "core/torch/analysis/joint_run.h"

namespace retrograd {

/// The joint or the backward trace of `analysis` as a computation of its own, which the grad transform takes like any
/// other: gradients of gradients. Its ops keep their ids in a copy of the document and become ops of a computation
/// there; where each came from is asked of `analysis`, by the same id. Inputs: the trace's; cotangents, and what was
/// saved for backward of the forward's own values, are user inputs with the tensors of `analysis` as samples (for the
/// backward the forward runs). Outputs: the joint's results, then the gradients that there are. What `analysis`
/// recomputes must not draw: see PartitionOptions::regions. Throws Error(badUse) for a trace of another kind, and as
/// Evaluator::run.
ModelFile asModel(const Analysis& analysis, TraceKind kind);

/// 1 for what was derived from a model, 2 for what was derived from that, and so on.
int orderOf(const Analysis& analysis);
/// Which trace of `analysis.differentiated` its computation is; joint where there is none.
TraceKind differentiatedKind(const Analysis& analysis);
/// What was derived from the model itself.
const Analysis& firstOf(const Analysis& analysis);

/// LibTorch's own gradients of gradients: `second.differentiated`'s computation run eagerly and differentiated with a
/// graph of the derivatives, which is differentiated again for the cotangents of `second` (the derivative of a joint
/// trace). The oracle for order 2 where the joint was differentiated. Throws Error(execution) where LibTorch refuses.
RunResult runEagerTwice(const Analysis& second);

}  // namespace retrograd

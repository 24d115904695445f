#pragma once
#include "core/formats/jobs/job_graphs.h"

namespace retrograd {

/// Draws of a forward that its backward repeats (dropout under checkpointing) as plain ops: `run_and_save_rng_state(OP,
/// x)` becomes OP(x). The state of the generator that it gave has no meaning any more; where it is returned, None is.
void drawPlainly(fx::Graph& forward);

/// Lets the backward read what the forward drew, in place of drawing it once more: what `run_with_rng_state` and
/// `prims.inductor_random` make becomes a value that is given (JobGraphs::shared), an output of the forward. Includes
/// drawPlainly(). The graphs are paired.
void shareDraws(JobGraphs& graphs);

}  // namespace retrograd

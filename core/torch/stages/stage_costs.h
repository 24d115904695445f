#pragma once
#include "core/cut/op_costs.h"
#include "core/schedule/schedule_simulation.h"
#include "core/torch/stages/pipeline.h"

namespace retrograd {

/// What each stage of a pipeline costs for one microbatch, for a simulation.
///
/// Measured: forward and backward of each stage run op by op, once to warm up and once for the clock; in milliseconds.
/// Estimated: the ops' costs from the traces alone (op_cost.h), where 100 % is what all stages take for one microbatch.
/// I and W are the two halves of the backward (backward_halves.h). Activation bytes: memory that the forward leaves for
/// the backward, what was received included, weights not. Throws Error(execution) where a stage does not run;
/// Error(cancelled).
ScheduleCosts measuredStageCosts(const Pipeline& pipeline, const Progress& progress = {});
ScheduleCosts estimatedStageCosts(const Pipeline& pipeline);

/// Seconds that each top-level op of the computation takes in forward and in backward, measured by running both op by
/// op (the second run counts).
OpCosts measuredCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress = {});

}  // namespace retrograd

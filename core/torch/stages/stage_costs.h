#pragma once
#include <functional>
#include <memory>

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

/// The cost of one stage, given what each of its ops costs: by position in forward, then backward.
StageCost stageCost(const Analysis& stage, const std::function<double(std::size_t position, BoundSymbolId op)>& costOf);

}  // namespace retrograd

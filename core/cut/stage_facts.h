#pragma once
#include <cstdint>
#include <vector>

#include "core/cut/op_costs.h"
#include "core/schedule/schedule_simulation.h"

namespace retrograd {

/// What a stage weighs.
struct StageFacts {
  std::size_t ops = 0;
  std::size_t parameters = 0;  ///< tensors that it holds
  std::int64_t parameterElements = 0, parameterBytes = 0, bufferBytes = 0;
  std::int64_t activationBytes = 0;  ///< of what its ops make, each storage once
  std::int64_t savedBytes = 0;       ///< of that, what the whole model's forward keeps for the backward
  double forward = 0, backward = 0;  ///< of the costs given
  double time() const { return forward + backward; }
};

/// By stage of the split; ids of `whole`, as those of asRead(whole) are. `costs` may be empty.
std::vector<StageFacts> stageFacts(const Analysis& whole, const ModelFile& model, const PipelineSplit& split,
                                   const OpCosts& costs);

/// By edge of the split: whether a gradient goes the way back. None goes for what requires none, and none for what
/// leads to no output at which the gradient begins; where `whole` has no cotangents, as it was not derived, the latter
/// is not known.
std::vector<char> gradientEdges(const Analysis& whole, const PipelineSplit& split);

/// What crosses the border between two neighbouring stages for one microbatch, values on their way to a later stage
/// included. Inputs of the model come from outside and cross none.
struct StageBorder {
  std::size_t values = 0, gradients = 0;
  std::int64_t valueBytes = 0, gradientBytes = 0;  ///< forwards and backwards
};

/// By border: the first is between stages 0 and 1.
std::vector<StageBorder> stageBorders(const Analysis& whole, const ModelFile& model, const PipelineSplit& split);

/// What one stage sends to another for one microbatch, and gets back as gradients; by source, then destination.
struct StageTraffic {
  int source = 0, destination = 0;
  std::int64_t valueBytes = 0, gradientBytes = 0;
};
std::vector<StageTraffic> stageTraffic(const Analysis& whole, const ModelFile& model, const PipelineSplit& split);

/// How long that is under way, in milliseconds, where `link` is 10^9 bytes a second.
std::vector<EdgeCost> transferTimes(const std::vector<StageTraffic>& traffic, double link);

/// Whether a run of the model draws random numbers.
bool drawsAnything(const Analysis& whole);

/// The stages between which something goes, each pair once: values, and of a model that draws the generator from each
/// stage to the next.
std::vector<StageEdge> stageEdges(const Analysis& whole, const PipelineSplit& split);

/// The stage of each top-level op of the computation, by its position; -1 for markers and what is in no stage.
std::vector<int> stageOfOps(const Computation& computation, const PipelineSplit& split);

}  // namespace retrograd

#pragma once
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/execution/distributed/stage_runner.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/schedule.h"
#include "core/pipeline/stage_run.h"

namespace retrograd {

/// The stages of a pipeline as a rank computes them, microbatch by microbatch. Names at a border are the source's output numbers. Each
/// microbatch has the shapes that the file was exported with; its draws start from a seed of stage and microbatch.
class RankStages : public StageRunner {
 public:
  explicit RankStages(const Pipeline& pipeline) : pipeline_(pipeline) {}

  StageValues forward(std::int32_t stage, std::int32_t microbatch, StageValues inputs) override;
  StageValues backward(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) override;
  StageValues backwardInput(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) override;
  void backwardWeight(std::int32_t stage, std::int32_t microbatch) override;

  /// Gradients of the parameters of the stages computed here, "p.<name>" by the first name of a tied one, summed over microbatches.
  TensorMap& parameterGradients() { return gradients_; }

 private:
  struct Running {
    StageForward forward;
    StageInputGradients half;
  };
  using Key = std::pair<std::int32_t, std::int32_t>;  ///< stage, microbatch

  TensorMap cotangentsOf(std::int32_t stage, const StageValues& sent) const;
  StageValues handBack(std::int32_t stage, const TensorMap& gradients) const;
  void addParameters(const TensorMap& gradients);

  const Pipeline& pipeline_;
  std::map<Key, Running> running_;
  TensorMap gradients_;
};

/// The inputs of one microbatch: those of the analysis, each with its elements rotated by the microbatch's number, so that microbatches differ
/// and every element stays one that the model can take.
TensorMap microbatchInputs(const Analysis& whole, std::int32_t microbatch);

/// Gradients of all parameters, summed over microbatches, by the model in one piece: what the ranks' have to be.
TensorMap unsplitGradients(const Analysis& whole, std::int32_t microbatches, const Progress& progress = {});

/// The stages between which values go, each pair once.
std::vector<StageEdge> stageEdges(const PipelineSplit& split);

/// What the ranks have to sum up: parameters that several stages have copies of.
std::map<std::string, TensorMeta> gradientsToSum(const Pipeline& pipeline);

/// Whether a run of the model draws random numbers.
bool drawsAnything(const Analysis& whole);

}  // namespace retrograd

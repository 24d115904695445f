#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ranks/stage_runner.h"
#include "core/schedule/schedule.h"
#include "core/torch/stages/microbatches.h"
#include "core/torch/stages/stage_run.h"

namespace retrograd {

/// The stages of a pipeline as a rank computes them, microbatch by microbatch. Names at a border are the source's
/// output numbers. Microbatch m draws from the seed of the model plus m, and the generator goes from stage to stage as
/// "generator", so that draws are those of the model in one piece. A buffer that a forward writes is what the stage's
/// next forward starts from, as in a training step.
class RankStages : public StageRunner {
 public:
  /// At least one microbatch; their pipelines have the same cuts. `keepOutputs`: those with dimensions too. `linked`:
  /// the device whose tensors can leave this rank from its own memory (DeviceLink); without one, and on other devices,
  /// what goes over a border is copied to the host.
  explicit RankStages(std::vector<Microbatch> microbatches, bool keepOutputs = false,
                      std::optional<Device> linked = {});

  StageValues forward(std::int32_t stage, std::int32_t microbatch, StageValues inputs) override;
  StageValues backward(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) override;
  StageValues backwardInput(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) override;
  void backwardWeight(std::int32_t stage, std::int32_t microbatch) override;

  /// Gradients of the parameters of the stages computed here, "p.<name>" by the first name of a tied one, summed over
  /// microbatches; with a link, where they were computed.
  TensorMap& parameterGradients() { return gradients_; }
  /// User outputs of the stages computed here, by position as text, then by microbatch.
  const std::map<std::string, std::map<std::int32_t, TensorData>>& outputs() const { return outputs_; }
  /// What the buffers that the stages here have written hold now, "b.<buffer>".
  TensorMap buffers() const;

 private:
  struct Running {
    StageForward forward;
    StageInputGradients half;
  };
  using Key = std::pair<std::int32_t, std::int32_t>;  ///< stage, microbatch

  Results results() const { return linked_ ? Results::inPlace : Results::onHost; }
  TensorData leaving(const TensorData& tensor) const;
  const Microbatch& at(std::int32_t microbatch) const { return microbatches_.at(microbatch); }
  const PipelineSplit& split() const { return microbatches_.front().pipeline->split; }
  TensorMap cotangentsOf(std::int32_t stage, std::int32_t microbatch, const StageValues& sent) const;
  const std::shared_ptr<const StageTensors>& weightsOf(const std::shared_ptr<const Analysis>& stage);
  TensorData generatorOf(std::int32_t stage, const Running& running, const StageValues& cotangents) const;
  StageValues handBack(std::int32_t stage, std::int32_t microbatch, const TensorMap& gradients,
                       const TensorData& generator) const;
  void addParameters(std::int32_t microbatch, const TensorMap& gradients);

  std::vector<Microbatch> microbatches_;
  bool keepOutputs_, draws_;
  std::optional<Device> linked_;
  std::map<std::shared_ptr<const Analysis>, std::shared_ptr<const StageTensors>> weights_;
  std::map<Key, Running> running_;
  TensorMap gradients_;
  std::map<std::int32_t, TensorMap> buffers_;  // by stage
  std::map<std::string, std::map<std::int32_t, TensorData>> outputs_;
};

/// What the model in one piece gives for the microbatches: what the ranks have to give.
struct UnsplitRun {
  TensorMap gradients;                                          ///< of all parameters, summed over microbatches
  std::vector<std::vector<std::optional<TensorData>>> outputs;  ///< by microbatch, user outputs in order
  TensorMap buffers;                                            ///< "b.<buffer>", behind the last microbatch
};
UnsplitRun runUnsplit(const std::vector<Microbatch>& microbatches, const Progress& progress = {});

/// The parameters ("p.<name>", by the first name of a tied one) that these stages hold.
std::set<std::string> gradientsOfStages(const Pipeline& pipeline, const std::set<std::int32_t>& stages);

/// What the ranks have to sum up: parameters that several stages have copies of.
std::map<std::string, TensorMeta> gradientsToSum(const Pipeline& pipeline);

}  // namespace retrograd

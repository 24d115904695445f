#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/torch/opinion/derived_forward.h"

namespace retrograd {

/// The job's own forward and backward graph, run on the values, draws and cotangents of the derived forward.
class JobRun {
 public:
  /// All must live longer.
  JobRun(const JobGraphs& graphs, const DerivedForward& derived, std::uint64_t seed, const TensorMap& filled,
         const Progress& progress)
      : graphs_(graphs), derived_(derived), seed_(seed), filled_(filled), progress_(progress) {}

  /// The forward once more with all that it saves, from the same seed: the same draws. Throws as the readers and runs
  /// do.
  void runForward();
  /// The backward on what the forward saved and the cotangents. Returns why it does not run; empty where it does.
  /// Throws Error for what is not the graph's: cancelled, io, an unknown op.
  std::string runBackward();

  /// Whether the backward gives gradients `factor` times as large, a power of two, where what flows in is so: bit for
  /// bit, but for numbers that are too large or small. Where it does not, it may lack a factor that was 1.
  bool scalesBy(double factor) const;

  /// A result of the forward; null where there is none.
  const TensorData* result(std::size_t output) const { return at(forward_, output); }
  /// The job's gradient of the i-th input of the forward; null where it is None.
  const TensorData* gradient(std::size_t i) const;
  /// The backward as a model, once it ran.
  const GraphModel& backward() const { return backwardModel_; }

 private:
  using Outputs = std::vector<std::optional<TensorData>>;
  static const TensorData* at(const Outputs& outputs, std::size_t i) {
    return i < outputs.size() && outputs[i] ? &*outputs[i] : nullptr;
  }
  void openBackward();

  const JobGraphs& graphs_;
  const DerivedForward& derived_;
  std::uint64_t seed_;
  const TensorMap& filled_;
  const Progress& progress_;
  GraphModel backwardModel_;
  Outputs forward_, backward_;
};

}  // namespace retrograd

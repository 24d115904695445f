#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/formats/jobs/differentiated.h"
#include "core/torch/checking/judge.h"
#include "core/torch/opinion/graph_model.h"

namespace retrograd {

/// The forward of a job as autograd differentiated it, derived by our own rules and run; and the joint graph of the
/// same compile, run as it is, as a witness of what autograd recorded.
class DerivedForward {
 public:
  /// `graphs` must live longer.
  DerivedForward(const JobGraphs& graphs, std::uint64_t seed, const Progress& progress);

  /// Derives it and runs it. Throws NotPossible, and Error as the readers and runs do.
  void derive(TensorMap inputs);
  /// Where the graphs leave open what autograd recorded, takes the way that gives the joint graph's gradients. Keeps
  /// what it has where none does.
  void settleDoubts();

  const Differentiated& forward() const { return forward_; }
  const GraphModel& model() const { return model_; }
  const TensorMap& results() const { return results_; }  ///< as namedResults()

  /// "grad.in.primals_1", of the i-th input of the forward.
  std::string gradientName(std::size_t i) const;
  /// The derived gradient; null where there is none.
  const TensorData* gradient(std::size_t i) const;

  /// The gradients that the joint graph gives, by input of the forward, with the same values, cotangents and draws;
  /// null where there is no joint graph with the forward's draws, or it does not run.
  const std::vector<std::optional<TensorData>>* joint();
  /// Whether a gradient is that of the joint graph, which is there. Null: it is None.
  bool isAsJoint(Judge& judge, std::size_t i, const TensorData* gradient);
  /// A judge by the noise of this model.
  Judge judge() const { return Judge(model_.analysis, {}, {.rounds = Noise::HalfOps::all}); }

 private:
  bool isDerivedAsJoint();
  std::vector<std::optional<TensorData>> runJointGraph() const;

  const JobGraphs& graphs_;
  std::uint64_t seed_;
  const Progress& progress_;
  Differentiated forward_;
  GraphModel model_;
  TensorMap results_;
  bool hasJoint_ = false;  ///< a joint graph of the forward's inputs, results and draws
  std::optional<std::vector<std::optional<TensorData>>> joint_;
};

}  // namespace retrograd

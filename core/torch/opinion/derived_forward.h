#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/formats/jobs/differentiated.h"
#include "core/torch/judging/judge.h"
#include "core/torch/opinion/graph_model.h"

namespace retrograd {

/// The forward of a job as autograd differentiated it, derived by our own rules and run; and the joint graph of the
/// same compile, run as it is, as a witness of what autograd recorded.
class DerivedForward {
 public:
  /// `graphs` must live longer. `constants`: of the compiled program, by attribute; `filled`: results of opaque ops;
  /// `ofLoss`: the cotangent of a loss.
  DerivedForward(const JobGraphs& graphs, std::uint64_t seed, double ofLoss, TensorMap constants, TensorMap filled,
                 const Progress& progress);

  /// Derives it and runs it. An op that has no derivative here is passed by: gradients through it are the joint
  /// graph's. Throws NotPossible, and Error as the readers and runs do.
  void derive(TensorMap inputs);
  /// Where the graphs leave open what autograd recorded, takes the way that gives the joint graph's gradients. Keeps
  /// what it has where none does.
  void settleDoubts();

  const Differentiated& forward() const { return forward_; }
  const GraphModel& model() const { return model_; }
  const TensorMap& results() const { return results_; }      ///< as namedResults()
  const TensorMap& constants() const { return constants_; }  ///< by attribute, those that were drawn included
  /// Whether all that flows into the backward is the cotangent of one number.
  bool isOfLoss() const;
  /// What flows into the backward, by the tangents' order: the outputs' cotangents, drawn where the derived forward has
  /// none. Those that are drawn have zeros, as where a loss reads only a part.
  const std::vector<TensorData>& cotangents() const { return cotangents_; }
  /// Ops without a derivative here: "torch.ops.aten._scaled_mm.default".
  const std::set<std::string>& underived() const { return underived_; }

  /// "grad.in.primals_1", of the i-th input of the forward.
  std::string gradientName(std::size_t i) const;
  /// The derived gradient; null where there is none. Where an op was decomposed before its derivative was taken, the
  /// formula may have no finite value where autograd's has one (the norm of zeros): such elements are those of the
  /// joint graph, as is a gradient of zeros that no op here passes on.
  const TensorData* gradient(std::size_t i) const;
  /// Whether it has elements of the joint graph.
  bool isFromJoint(std::size_t i) const { return fromJoint_.contains(i); }
  /// Whether the gradient of the i-th input has a part through an op that is opaque or has no derivative here.
  bool passesUnknown(std::size_t i) const { return passesUnknown_[i] != 0; }
  /// Whether the loss, or another output that has a tangent, depends on an opaque op.
  bool dependsOnOpaque() const { return dependsOnOpaque_; }

  /// The gradients that the joint graph gives, by input of the forward, with the same values, cotangents and draws;
  /// null where there is no joint graph with the forward's draws, or it does not run.
  const std::vector<std::optional<TensorData>>* joint();
  /// Whether a gradient is that of the joint graph, which is there. Null: it is None.
  bool isAsJoint(Judge& judge, std::size_t i, const TensorData* gradient);
  /// A gradient against that of the joint graph, which is there and not None, by the noise of the joint graph.
  Measure againstJoint(std::size_t i, const TensorData& gradient);
  /// A gradient against another, by the noise that `judge` has of the derived one, or by that of the joint graph where
  /// the derived one has elements of it or is unknown.
  Measure compare(Judge& judge, std::size_t i, const TensorData& gradient, const TensorData& expected);
  /// A judge by the noise of this model.
  Judge judge() const { return Judge(model_.analysis, {}, {.rounds = Noise::HalfOps::all}); }

 private:
  void open(const TensorMap& inputs);
  bool passBy(const std::string& op);
  void findUnknown();
  void takeConstants();
  TensorMeta tangentMeta(std::size_t k) const;
  void takeCotangents();
  void takeFromJoint();
  Measure compareByJoint(std::size_t i, const TensorData& gradient, const TensorData& expected);
  bool isDerivedAsJoint();
  std::vector<std::optional<TensorData>> runJointGraph();

  const JobGraphs& graphs_;
  std::uint64_t seed_;
  double ofLoss_;
  TensorMap constants_, filled_;
  const Progress& progress_;
  Differentiated forward_;
  GraphModel model_, jointModel_;
  TensorMap results_;
  std::vector<TensorData> cotangents_;
  std::set<std::string> underived_;
  std::vector<char> passesUnknown_;  ///< by input
  std::set<std::size_t> fromJoint_;  ///< inputs whose gradient has elements of the joint graph
  bool dependsOnOpaque_ = false;
  bool hasJoint_ = false;  ///< a joint graph of the forward's inputs, results and draws
  std::optional<std::vector<std::optional<TensorData>>> joint_;
  std::optional<Judge> jointJudge_;
};

/// Gives a graph the constants that it reads, by the names of its nodes.
void giveConstants(const fx::Graph& graph, const TensorMap& constants, TensorMap& inputs);

}  // namespace retrograd

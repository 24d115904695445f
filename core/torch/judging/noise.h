#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/torch/analysis/joint_run.h"

namespace retrograd {

/// How far rounding moves each tensor that a model gives, measured on LibTorch's eager run and so independent of the
/// traces that are judged with it. First estimate: the eager run in the file's precision against the same run in
/// float64. A single run can be lucky, and in float64 there is nothing more exact to compare with; refined() adds eager
/// runs whose parameters, inputs, cotangents and gradients of each op differ by one rounding step: gradients that
/// cancel exactly in eager's order of summing show how large they are. The runs are made when they are first needed; of
/// each but the first only the movements are kept. Where LibTorch cannot differentiate the model, runs of the joint
/// trace take the place of eager runs.
class Noise {
 public:
  /// Where an op of the joint trace that gives 16 bits may round otherwise, as where the same formula is written in
  /// other ops.
  enum class HalfOps { none, backward, all };
  struct Options {
    /// The runs that differ by one rounding step move tensors of 16 bits too. Not where both sides read the same ones:
    /// a result in float32 would be granted steps of bfloat16.
    bool movesHalves = true;
    HalfOps rounds = HalfOps::none;  ///< refined() adds runs of the joint trace in which few elements of these results
                                     ///< are one step off
  };

  explicit Noise(std::shared_ptr<const Analysis> analysis);
  Noise(std::shared_ptr<const Analysis> analysis, Options options);

  /// LibTorch's own run, by namedResults(); null where LibTorch refuses the model.
  const TensorMap* eager();
  /// Why it does; empty where it does not.
  const std::string& refusal();

  /// Largest movement of an element of this tensor; 0 where no run says anything of it.
  double of(const std::string& name);
  /// The same with the runs that differ by one rounding step.
  double refined(const std::string& name);
  /// The same with runs of the joint trace in which the results of all ops are a few rounding steps off, where
  /// Options::rounds is not none: the other side may write the same formula in other ops.
  double finest(const std::string& name);

 private:
  using Run = std::optional<TensorMap>;
  /// Largest movement of an element by the tensor's name.
  using Movements = std::map<std::string, double>;

  void runBase();
  Run inDouble() const;
  Run moved(std::uint64_t seed) const;
  TensorMap run(const Analysis& analysis, std::uint64_t roundedGradients = 0) const;
  Run rounded(std::uint64_t seed) const;
  void refine();
  void roundEachOp();

  std::shared_ptr<const Analysis> analysis_;
  Options options_;
  bool ran_ = false, byJoint_ = false;
  Run base_;
  std::string refusal_;
  std::optional<Movements> double_;
  std::optional<Movements> finest_;
  std::optional<Movements> refined_;  ///< of all runs that differ by one rounding step
};

/// Whether some op draws random numbers.
bool drawsRandomNumbers(const Analysis& analysis);

/// What all ops of a model give has fewer elements than this where its runs cost next to nothing.
constexpr std::int64_t fewElements = 20'000;
/// The elements of what the ops of a model give; of each result no more than fewElements. `counts`: which results;
/// none: all.
std::int64_t countElements(const Analysis& analysis, const std::function<bool(const TensorMeta&)>& counts = {});

}  // namespace retrograd

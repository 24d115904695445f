#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "core/torch/opinion/derived_forward.h"
#include "core/torch/opinion/job_run.h"
#include "core/torch/opinion/second_opinion.h"
#include "core/torch/opinion/witnessed.h"

namespace retrograd {

/// Compares the gradients of a job's backward, which has run, with those derived from the forward: by value, and where
/// the derived one cannot say what is right, with those of the joint graph.
class GradientComparison {
 public:
  /// All must live longer. The job's gradients go to `opinion`, and what the joint graph said to `witnessed`.
  GradientComparison(const JobGraphs& graphs, DerivedForward& derived, const JobRun& job, Judge& judge,
                     SecondOpinion& opinion, Witnessed& witnessed)
      : graphs_(graphs), derived_(derived), job_(job), judge_(judge), opinion_(opinion), witnessed_(witnessed) {}

  /// On the gradient of the i-th input of the forward; nothing where it is None in both or not judged.
  std::optional<Claim> compare(std::size_t i);
  /// Gradients that are None in both.
  std::size_t none() const { return none_; }
  /// NaN and infinities in gradients that agree.
  const std::vector<Claim>& notFinite() const { return notFinite_; }

 private:
  std::optional<Claim> compareDerived(std::size_t i);
  std::optional<Claim> compareUnknown(std::size_t i);
  std::optional<Claim> compareWithOwn(std::size_t i);
  bool isOnlyUndefined(std::size_t i, const TensorData& imported, const TensorData& derived);
  bool isExplained(std::size_t i, const Measure& measure);
  Claim claim(std::size_t i, Producer by, Measure measure) const;
  Claim failed(std::size_t i, Producer by, const char* why) const;
  Claim byValue(std::size_t i, Producer by, Measure measure, const TensorData& expected);

  const JobGraphs& graphs_;
  DerivedForward& derived_;
  const JobRun& job_;
  Judge& judge_;
  SecondOpinion& opinion_;
  Witnessed& witnessed_;
  std::size_t none_ = 0;
  std::vector<Claim> notFinite_;
};

}  // namespace retrograd

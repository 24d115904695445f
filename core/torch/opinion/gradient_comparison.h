#pragma once
#include <cstddef>
#include <string>

#include "core/torch/opinion/derived_forward.h"
#include "core/torch/opinion/job_run.h"
#include "core/torch/opinion/witnessed.h"

namespace retrograd {

/// Compares the gradients of a job's backward, which has run, with those derived from the forward: by value, and where
/// the derived one cannot say what is right, with those of the joint graph.
class GradientComparison {
 public:
  /// All must live longer. What is compared is noted in `opinion`, and what the joint graph said in `witnessed`.
  GradientComparison(const JobGraphs& graphs, DerivedForward& derived, const JobRun& job, Judge& judge,
                     SecondOpinion& opinion, Witnessed& witnessed)
      : graphs_(graphs), derived_(derived), job_(job), judge_(judge), opinion_(opinion), witnessed_(witnessed) {}

  /// What is wrong with the gradient of the i-th input of the forward; empty where nothing is.
  std::string compare(std::size_t i);

 private:
  std::string compareDerived(std::size_t i);
  std::string compareUnknown(std::size_t i);
  std::string compareWithOwn(std::size_t i);
  bool isOnlyUndefined(std::size_t i, const TensorData& imported, const TensorData& derived);
  bool isExplained(std::size_t i, const std::string& text);
  std::string textOf(std::size_t i, TensorVerdict verdict, const TensorData& expected);

  const JobGraphs& graphs_;
  DerivedForward& derived_;
  const JobRun& job_;
  Judge& judge_;
  SecondOpinion& opinion_;
  Witnessed& witnessed_;
};

}  // namespace retrograd

#include "core/torch/checking/judged_run.h"

#include <utility>

#include "core/torch/judging/health.h"

namespace retrograd {

JudgedRun::JudgedRun(std::shared_ptr<const Analysis> a, const CheckOptions& options, const Progress& p)
    : analysis(std::move(a)), run(namedSessionResults(analysis, p)), judge(analysis, options.tolerance), progress(p) {}

/// Whose numbers are not finite, and where they come from; empty where all are.
std::string JudgedRun::nonFinite(const std::string& name, const TensorData& tensor) {
  const auto claim = notFinite(name, tensor);
  if (!claim) return {};
  if (!roots_) roots_ = rootsOfNonFinite(*analysis, progress);
  return roots_->empty() ? claim->sentence : claim->sentence + "; " + roots_->front().sentence;
}

Measure JudgedRun::compare(const std::string& name, const TensorData& actual, const TensorData& expected,
                           bool anyFloatType, bool ofOther) {
  auto measure = judge.compare(name, actual, expected, anyFloatType);
  if (ofOther && !measure.good() && measure.failure.empty())
    measure.tolerance += onCpu().apart(name, judge.noise().eager());
  if (!measure.failure.empty())
    if (const auto text = nonFinite(name, actual); !text.empty()) measure.failure += "; " + text;
  return measure;
}

OtherDevice& JudgedRun::onCpu() {
  if (!cpu_) cpu_.emplace(*analysis, Device(), progress);
  return *cpu_;
}

}  // namespace retrograd

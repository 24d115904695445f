#include "core/torch/checking/judged_run.h"

#include <fmt/format.h>

#include <utility>

#include "core/torch/judging/compare.h"

namespace retrograd {

JudgedRun::JudgedRun(std::shared_ptr<const Analysis> a, const CheckOptions& options, const Progress& p)
    : analysis(std::move(a)), run(namedSessionResults(analysis, p)), judge(analysis, options.tolerance), progress(p) {}

/// Whose numbers are not finite, and where they come from; empty where all are.
std::string JudgedRun::nonFinite(const TensorData& tensor) {
  const auto count = countNonFinite(tensor);
  if (count.nan + count.infinite == 0) return {};
  if (!origin_) origin_ = describeRoots(rootsOfNonFinite(*analysis, progress));
  auto text =
      fmt::format("has {} NaN and {} infinities among {} elements", count.nan, count.infinite, tensor.meta.elements());
  return origin_->empty() ? text : text + ", " + *origin_;
}

TensorVerdict JudgedRun::compare(const std::string& prefix, const std::string& name, const TensorData& actual,
                                 const TensorData& expected, bool anyFloatType, bool ofOther) {
  auto verdict = judge.compare(name, actual, expected, anyFloatType);
  if (ofOther && !verdict.good() && verdict.failure.empty())
    verdict.tolerance += onCpu().apart(name, judge.noise().eager());
  if (!verdict.failure.empty())
    if (const auto text = nonFinite(actual); !text.empty()) verdict.failure += "; " + text;
  verdict.name = prefix + name;
  return verdict;
}

OtherDevice& JudgedRun::onCpu() {
  if (!cpu_) cpu_.emplace(*analysis, Device(), progress);
  return *cpu_;
}

}  // namespace retrograd

#include "core/torch/checking/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace retrograd {
namespace {

std::string reasonOf(const TensorVerdict& verdict) {
  if (!verdict.failure.empty()) return verdict.name + ": " + verdict.failure;
  return fmt::format("{} deviates by {:.2g}, its tolerance is {:.2g} (largest element {:.2g})", verdict.name,
                     verdict.deviation, verdict.tolerance, verdict.scale);
}

}  // namespace

std::string tensorOf(const std::string& verdictName) {
  for (const std::string_view prefix : {"f64/", "eager/", "eager2/", "cpu/", "split/", "session/"})
    if (verdictName.starts_with(prefix)) return verdictName.substr(prefix.size());
  return verdictName;
}

void Verdicts::add(TensorVerdict verdict) {
  markCompared(verdict.name);
  verdicts_.push_back(std::move(verdict));
}

void Verdicts::fail(const std::string& name, std::string reason) {
  add({name, std::numeric_limits<double>::infinity(), 0, 0, std::move(reason)});
}

void Verdicts::writeTo(CheckReport& report, const TensorMap& given) const {
  report.tensors = verdicts_;
  const TensorVerdict* worst = nullptr;
  const TensorVerdict* failed = nullptr;
  std::set<std::string> noisy, wrong;
  for (const auto& verdict : verdicts_) {
    if (verdict.tooNoisy()) noisy.insert(tensorOf(verdict.name));
    if (verdict.deviation > 0 && (!worst || verdict.ratio() > worst->ratio())) worst = &verdict;
    if (verdict.good()) continue;
    wrong.insert(tensorOf(verdict.name));
    if (!failed || verdict.ratio() > failed->ratio()) failed = &verdict;
  }
  if (failed) worst = failed;
  if (worst) {
    report.worst = worst->name;
    report.error = worst->deviation;
    report.tolerance = worst->tolerance;
    report.scale = worst->scale;
  }
  if (failed) {
    report.status = CheckStatus::fail;
    if (report.reason.empty()) report.reason = reasonOf(*failed);
    if (wrong.size() > 1) report.reason += fmt::format("; {} tensors fail", wrong.size());
  }
  report.tooNoisy.assign(noisy.begin(), noisy.end());
  for (const auto& [name, tensor] : given)
    if (!compared_.contains(name)) report.notCompared.push_back(name);
}

}  // namespace retrograd

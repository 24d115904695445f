#include "core/torch/steps/judge_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/torch/steps/optimizer_updates.h"
#include "core/torch/steps/step_report.h"

namespace retrograd {
namespace {

/// The line and the parameters have columns of their own, or are behind the numbers.
Finding findingOf(const Claim& claim) {
  using Shown = Finding::Severity;
  Finding finding{.severity = claim.severity == Severity::fault       ? Shown::error
                              : claim.severity == Severity::suspicion ? Shown::warning
                                                                      : Shown::note,
                  .title = claim.sentence};
  if (!claim.parameters.empty()) finding.numbers = "behind it: " + namesText(claim.parameters);
  if (!claim.remedy.empty()) finding.numbers += (finding.numbers.empty() ? "" : "; ") + claim.remedy;
  finding.op = claim.op;
  finding.also = claim.also;
  finding.value = claim.value;
  finding.command = claim.command;
  return finding;
}

}  // namespace

std::vector<Finding> judgeStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  auto report = reportOf(runStep(analysis, progress));
  std::ranges::stable_sort(report.claims, std::ranges::greater(), &Claim::severity);
  std::vector<Finding> findings;
  for (const auto& claim : report.claims) findings.push_back(findingOf(claim));
  return findings;
}

std::map<std::string, UpdateNumbers> lastUpdates(const std::shared_ptr<const Analysis>& analysis,
                                                 const Progress& progress) {
  std::map<std::string, UpdateNumbers> last;
  for (const auto& step : optimizerUpdates(analysis, progress).steps)
    for (const auto& update : step.parameters)
      if (update.update) last[update.parameter] = {update.clipFactor(), normOfAll(*update.update), update.ratio()};
  return last;
}

}  // namespace retrograd

#include "core/torch/steps/judge_step.h"

#include <fmt/format.h>

#include "core/formats/recording/recording.h"
#include "core/torch/steps/step_opinion.h"

namespace retrograd {
namespace {

std::string behindText(const GradientCut& cut) {
  if (cut.parameters.empty()) return {};
  auto text = "behind it: " + cut.parameters.front();
  return cut.parameters.size() > 1 ? text + fmt::format(" and {} more", cut.parameters.size() - 1) : text;
}

Finding findingOf(const Analysis& analysis, const GradientCut& cut) {
  auto without = cut;  // line and parameters have columns of their own
  without.line.clear();
  without.parameters.clear();
  const auto fault = faultOf(cut, *analysis.file.recording, false, nullptr);
  Finding finding{.severity = fault.empty() ? Finding::Severity::note : Finding::Severity::error,
                  .title = describe(without)};
  finding.numbers = fault.empty() ? "a cut, which may be meant" : fault;
  if (const auto behind = behindText(cut); !behind.empty()) finding.numbers += "; " + behind;
  finding.op = cut.at;
  finding.also = {cut.op};
  if (const auto forward = analysis.links.forwardOf(*analysis.document, cut.op)) finding.also.push_back(forward);
  finding.command = "source";
  return finding;
}

}  // namespace

std::vector<Finding> judgeStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  const auto step = replayWithOpinion(analysis, progress);
  std::vector<Finding> findings;
  if (const auto& bad = step.updates.firstBad) {
    const auto& update = step.updates.steps[bad->step];
    Finding finding{.severity = Finding::Severity::error};
    finding.title = fmt::format("the update of {} in {} is not finite", update.parameters[bad->parameter].parameter,
                                titleOf(step.updates, update));
    finding.numbers = bad->why;
    finding.op = bad->op;
    if (bad->op) finding.command = "source";
    findings.push_back(std::move(finding));
  }
  for (const auto& cut : step.opinion.cuts) findings.push_back(findingOf(*analysis, cut));
  for (const auto& update : step.updates.steps) {
    if (!update.wasSkipped) continue;
    Finding finding{.severity = Finding::Severity::note,
                    .title = titleOf(step.updates, update) + ": " + whySkipped(update)};
    findings.push_back(std::move(finding));
  }
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

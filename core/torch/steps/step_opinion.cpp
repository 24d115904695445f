#include "core/torch/steps/step_opinion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/enum_array.h"
#include "core/formats/recording/recording.h"
#include "core/questions/nan_walk.h"
#include "core/torch/session/record_run.h"
#include "core/torch/steps/backward_walk.h"
#include "core/torch/steps/update_measures.h"

namespace retrograd {
namespace {

constexpr EnumArray<GradientCut::Kind, std::string_view, 6> kindNames{"built-in op", "function", "hook",
                                                                      "detach",      "no_grad",  "in place"};
constexpr double sameFactor = 0.02;

/// The function of the user's that a line is in: it stays where lines move.
std::string functionOf(const std::string& line) {
  const auto in = line.rfind(" in ");
  return in == std::string::npos ? line : line.substr(in + 4);
}

}  // namespace

std::string_view name(GradientCut::Kind kind) { return kindNames[kind]; }

std::string describe(const GradientCut& cut) {
  std::string text = cut.kind == GradientCut::Kind::builtin ? cut.name
                     : cut.kind == GradientCut::Kind::function || cut.kind == GradientCut::Kind::hook
                         ? fmt::format("{} `{}`", name(cut.kind), cut.name)
                         : fmt::format("{} ({})", name(cut.kind), cut.name);
  text += ": ";
  if (cut.factor && *cut.factor == 0) text += "no gradient goes through";
  else if (cut.factor)
    text += std::abs(*cut.factor - 1) < 0.01 ? fmt::format("{:.7g} times the derivative", *cut.factor)
                                             : fmt::format("{:.3g} times the derivative", *cut.factor);
  else text += cut.off;
  if (!cut.line.empty()) text += "; " + cut.line;
  if (!cut.because.empty()) text += "; " + cut.because;
  if (cut.parameters.empty()) return text;
  text += "; behind it: " + cut.parameters.front();
  if (cut.parameters.size() > 1) text += fmt::format(" and {} more", cut.parameters.size() - 1);
  return text;
}

ReplayedStep replayWithOpinion(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  ReplayedStep step;
  const TrainedValues trained(*analysis);
  OpDerivatives derivatives(*analysis->document);
  const StepValues* kept = nullptr;
  StepValues values(*analysis, [&](const BackwardSpan& span) {
    progress.check();
    BackwardWalk(*analysis, *kept, trained, derivatives, span, step.opinion).run();
  });
  kept = &values;
  UpdateMeasures measures(*analysis);
  step.replay = replay(analysis, progress, {&values, &measures});
  step.updates = measures.take();
  explainFirstBad(*analysis, step.updates, progress);
  if (step.updates.firstBad) step.root = step.updates.firstBad->op;
  else if (!step.replay.unsound.empty() && step.replay.stopped.empty())
    step.root = walkToRoots(*analysis, recordRun(*analysis, {}, progress)).root;
  return step;
}

std::string faultOf(const GradientCut& cut, const StepRecording& recording, bool strict, const StepOpinion* good) {
  if (cut.kind == GradientCut::Kind::builtin) return "its gradient is not its derivative";
  if (cut.nonFinite) return "the gradient is NaN or infinite where the derivative is finite";
  if (cut.factor && *cut.factor == 0)
    for (const auto& parameter : cut.parameters)
      if (std::ranges::find(recording.withoutGradient, parameter) != recording.withoutGradient.end())
        return fmt::format("it leaves {}, which an optimizer was given, without a gradient", parameter);
  if (good) {
    const auto same = std::ranges::find_if(good->cuts, [&](const GradientCut& one) {
      return one.kind == cut.kind && one.name == cut.name && functionOf(one.line) == functionOf(cut.line);
    });
    if (same == good->cuts.end()) return "the recording that is right has no such cut";
    if (same->factor && cut.factor && std::abs(*same->factor - *cut.factor) > sameFactor * std::abs(*same->factor))
      return fmt::format("it is {:.3g} times the derivative in the recording that is right", *same->factor);
  }
  return strict ? "every cut is a fault here (--strict)" : std::string();
}

}  // namespace retrograd

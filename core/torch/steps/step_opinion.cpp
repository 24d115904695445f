#include "core/torch/steps/step_opinion.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/id_vector.h"
#include "core/formats/recording/recording.h"
#include "core/questions/nan_walk.h"
#include "core/torch/session/record_run.h"
#include "core/torch/steps/backward_walk.h"
#include "core/torch/steps/step_books.h"
#include "core/torch/steps/update_measures.h"

namespace retrograd {
namespace {

/// Marks what depends on gradients that were not compared, up to the parameters: each has the first reason.
void findNotJudged(const Analysis& analysis, const TrainedValues& trained, StepOpinion& opinion) {
  const auto& document = *analysis.document;
  IdVector<ValueId, const NotCompared*> open(document.valueCount(), nullptr);
  const auto mark = [&](ValueId value, const NotCompared* one) {
    if (!trained.has(value) || open[value]) return;
    open[value] = one;
    if (const auto* parameter = trained.parameter(value))
      opinion.notJudged.try_emplace(*parameter,
                                    one->op ? fmt::format("it comes through {}{}{}: {}", document.symbol(one->op).name,
                                                          recordedLine(document, one->op).empty() ? "" : ", ",
                                                          recordedLine(document, one->op), one->why)
                                            : one->why);
  };
  for (const auto& one : opinion.notCompared) {
    if (one.value) mark(one.value, &one);
    else
      for (const auto operand : document.operands(one.op)) mark(operand, &one);
  }
  if (opinion.notCompared.empty()) return;
  for (auto i = analysis.joint.ops.size(); i-- > 0;)
    for (const auto output : document.outputs(analysis.joint.ops[i]))
      if (output && open[output])
        for (const auto operand : document.operands(analysis.joint.ops[i])) mark(operand, open[output]);
}

}  // namespace

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
  const StepMembers members(*analysis);
  GradientBooks gradients(*analysis, members);
  EqualParameters equal(members);
  step.replay = replay(analysis, progress, {&values, &measures, &gradients, &equal});
  step.updates = measures.take();
  const auto add = [&](std::vector<Claim> claims) {
    step.books.insert(step.books.end(), claims.begin(), claims.end());
  };
  add(gradients.claims());
  if (analysis->file.recording->error.empty()) add(droppedWork(*analysis, members));
  add(writesOutside(*analysis, members));
  add(oddUpdates(step.updates));
  add(equal.take());
  add(members.claims());
  add(modesOf(*analysis, members));
  findNotJudged(*analysis, trained, step.opinion);
  explainFirstBad(*analysis, step.updates, progress);
  if (step.updates.firstBad) step.root = step.updates.firstBad->op;
  else if (step.replay.stopped.empty() && std::ranges::any_of(step.replay.unhealthy, [](const Claim& claim) {
             return claim.by == Producer::health && claim.severity == Severity::fault;
           }))
    step.root = walkToRoots(*analysis, recordRun(*analysis, {}, progress)).root;
  return step;
}

}  // namespace retrograd

#include "views/stages/schedule_run.h"

#include "core/schedule/schedule_kinds.h"
#include "views/stages/stage_cut.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

const ScheduleKind& kindOf(const ScheduleRequest& request) {
  const auto* kind = findScheduleKind(request.kind.toStdString());
  if (!kind) throw Error(ErrorCode::badUse, "there is no such schedule", request.kind.toStdString());
  return *kind;
}

Schedule scheduleFor(const ScheduleRequest& request) {
  if (!request.file.isEmpty()) return readScheduleFile(request.file.toStdString());
  return makeSchedule(kindOf(request), request.ranks, request.microbatches, stagesPerRank(request));
}

/// Times of the cut's stages, in milliseconds where they were measured, else in hundredths of what all stages take for
/// one microbatch.
ScheduleCosts costsOf(const StageCut& cut, double scale) {
  ScheduleCosts costs;
  costs.unit = cut.measured ? "ms" : "%";
  for (const auto& facts : cut.facts) {
    StageCost cost;
    cost.forward = facts.forward * scale;
    cost.backward = facts.backward * scale;
    cost.backwardInput = cost.backwardWeight = cost.backward / 2;
    cost.activationBytes = facts.savedBytes;
    costs.stages.push_back(cost);
  }
  return costs;
}

void takeTimes(ScheduleRun& run, std::shared_ptr<const StageCut> cut) {
  if (!cut || cut->stages() < 2) {
    run.whyEqual = tr("the model is in one piece");
    return;
  }
  if (cut->stages() != run.schedule.stages) {
    run.whyEqual =
        tr("the model is cut into %1 stages, this schedule has %2").arg(cut->stages()).arg(run.schedule.stages);
    return;
  }
  double all = 0;
  for (const auto& facts : cut->facts) all += facts.time();
  if (!(all > 0)) {
    run.whyEqual = tr("nothing is known of the stages' times");
    return;
  }
  run.times = cut->measured ? StageTimes::measured : StageTimes::estimated;
  run.costs = costsOf(*cut, cut->measured ? 1e3 : 100 / all);
  run.schedule.edges = stageEdges(*cut->document().analysis, cut->split);
  if (cut->measured && run.request.link > 0)
    run.costs.edges =
        transferTimes(stageTraffic(*cut->document().analysis, cut->bench->model, cut->split), run.request.link);
  run.cut = std::move(cut);
}

}  // namespace

int stagesPerRank(const ScheduleRequest& request) {
  const auto* kind = findScheduleKind(request.kind.toStdString());
  return kind && kind->fixedStagesPerRank > 0 ? kind->fixedStagesPerRank : request.stagesPerRank;
}

ScheduleRequest fitted(ScheduleRequest request, int stages) {
  const auto* kind = findScheduleKind(request.kind.toStdString());
  if (stages < 2 || !request.file.isEmpty() || !kind) return request;
  const auto each = stagesPerRank(request);
  if (stages % each == 0 && (kind->fixedStagesPerRank > 0 || stages > each)) {
    request.ranks = stages / each;
  } else if (kind->fixedStagesPerRank == 0) {
    request.stagesPerRank = 1;
    request.ranks = stages;
  }
  return request;
}

std::shared_ptr<const ScheduleRun> runSchedule(const ScheduleRequest& request, std::shared_ptr<const StageCut> cut) {
  auto run = std::make_shared<ScheduleRun>();
  run->request = request;
  try {
    run->schedule = scheduleFor(request);
    takeTimes(*run, std::move(cut));
    run->simulation = simulate(run->schedule, run->costs);
  } catch (const std::exception& error) {  // memory included: a file may be of any size
    run->problem = toQt(messageOf(error));
    run->simulation = {};
  }
  return run;
}

QString ScheduleRun::timeText(double time) const {
  switch (times) {
    case StageTimes::measured: return secondsText(time / 1e3);
    case StageTimes::estimated: return tr("%1 %").arg(time, 0, 'f', 1);
    default: return numberText(time);
  }
}

QString ScheduleRun::timesText() const {
  switch (times) {
    case StageTimes::measured:
      return request.link > 0 ? tr("Stage times are measured, transfers run at %1 GB/s.").arg(request.link)
                              : tr("Stage times are measured, transfers are free.");
    case StageTimes::estimated:
      return tr(
          "Stage times are estimated: 100 % is what the model takes for one microbatch. Measure Times gives seconds.");
    default: return tr("Equal times, F = I = W = 1 and B = 2: %1.").arg(whyEqual);
  }
}

}  // namespace retrograd::views

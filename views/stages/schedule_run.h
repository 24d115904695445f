#pragma once
#include <QString>
#include <memory>

#include "core/schedule/schedule_simulation.h"

namespace retrograd::views {

struct StageCut;

/// Which schedule, and how large. A file says itself how large it is.
struct ScheduleRequest {
  QString kind = QStringLiteral("1F1B");               ///< one of scheduleKinds(); not looked at where there is a file
  QString file;                                        ///< in the CSV form; empty: of the kind
  int ranks = 4, stagesPerRank = 2, microbatches = 8;  ///< stagesPerRank: where the kind leaves it open
  double link =
      0;  ///< 10^9 bytes a second between two ranks; 0: what crosses is there at once. Heeded with measured times

  bool operator==(const ScheduleRequest&) const = default;
};

/// Where the times of a simulation come from: F = I = W = 1 and B = 2, or the stages of the open model.
enum class StageTimes { equal, estimated, measured };

/// A schedule and its simulated run; never changes once published.
struct ScheduleRun {
  ScheduleRequest request;
  std::shared_ptr<const StageCut> cut;  ///< whose times it has; null for equal times
  Schedule schedule;
  ScheduleCosts costs;
  Simulation simulation;
  StageTimes times = StageTimes::equal;
  QString whyEqual;  ///< why the times are not the model's
  QString problem;   ///< why it does not run, first what is not met; empty: it does

  bool runs() const { return problem.isEmpty(); }
  /// A time of the simulation: seconds where they were measured, else in hundredths of the model's time for one
  /// microbatch, else a bare number.
  QString timeText(double time) const;
  /// The meaning of the times, as a sentence.
  QString timesText() const;
};

/// Makes or reads, checks and simulates. Never throws: `problem` says what is wrong. `cut` may be null; its times
/// are taken where it has as many stages as the schedule. A half of the backward is taken to be half of its time.
std::shared_ptr<const ScheduleRun> runSchedule(const ScheduleRequest& request, std::shared_ptr<const StageCut> cut);

/// Stages that a rank has in a schedule of the request's kind.
int stagesPerRank(const ScheduleRequest& request);
/// The same request with as many ranks as give this many stages, where some do.
ScheduleRequest fitted(ScheduleRequest request, int stages);

}  // namespace retrograd::views

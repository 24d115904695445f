#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/schedule/schedule.h"
#include "core/schedule/schedule_dependencies.h"

namespace retrograd {

/// A rank that cannot go on: the action it is at, and what that waits for.
struct WaitingRank {
  std::int32_t rank = 0;
  std::size_t position = 0;  ///< of the action in the rank's row, from 0
  Action action;
  Fact needs{};
  std::string needed;            ///< the action that would do it, as in the schedule: "1B0" or "1I0"
  std::int32_t neededRank = -1;  ///< whose row has it, -1: nobody's
};

struct ScheduleCheck {
  std::vector<Problem> problems;     ///< the first one is where to look first
  std::vector<WaitingRank> waiting;  ///< of a deadlock: every rank that cannot go on
  bool ok() const { return problems.empty(); }
};

/// Whether the schedule can run to its end, each rank going through its row and waiting at each action for what it
/// needs, and whether every stage then has done one forward and one backward (B, or I and W) of every microbatch.
/// Places name rank, position from 1, action.
ScheduleCheck checkSchedule(const Schedule& schedule);

/// Throws Error(badInput) with the first problem and, of a deadlock, who waits for what.
void requireValid(const Schedule& schedule);

}  // namespace retrograd

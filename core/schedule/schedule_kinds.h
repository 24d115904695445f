#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/schedule/schedule.h"

namespace retrograd {

/// How many ranks share the work, how many stages each holds, in how many microbatches a batch is cut.
struct ScheduleSize {
  std::int32_t ranks = 1;
  std::int32_t stagesPerRank = 1;
  std::int32_t microbatches = 1;
};

/// A published schedule.
struct ScheduleKind {
  std::string_view name;            ///< as in PyTorch, without its "Schedule"
  std::string_view description;     ///< one line, with its source
  std::int32_t fixedStagesPerRank;  ///< 0: any number
  bool vShaped;                     ///< rank r holds stages r and 2P-1-r, else r, r+P, r+2P, ...
  std::vector<Action> (*row)(const ScheduleSize& size, std::int32_t rank);
};

const std::vector<ScheduleKind>& scheduleKinds();

/// The kind of that name, whatever its case, with or without "Schedule"; null where there is none.
const ScheduleKind* findScheduleKind(std::string_view name);

/// The schedule of `kind` for `ranks` and `microbatches`; `stagesPerRank` 0 means the kind's own number, or two where
/// it is free. It holds checkSchedule. Throws Error(badUse) where there is no such schedule, saying which numbers would
/// do.
Schedule makeSchedule(const ScheduleKind& kind, std::int32_t ranks, std::int32_t microbatches,
                      std::int32_t stagesPerRank = 0);

}  // namespace retrograd

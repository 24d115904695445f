#pragma once
#include <cstdint>
#include <vector>

#include "core/schedule/schedule.h"

namespace retrograd {

struct LoweringOptions {
  bool mergeBackward = false;             ///< an I followed at once by its W becomes one B
  std::vector<std::int32_t> reduceGrads;  ///< stages whose gradients are reduced over ranks after their last backward
};

/// The schedule with the transfers that it implies. A SEND comes right after the action that makes what is sent, once
/// for all consumers. A RECV is where the last of what it receives has been sent, in the order in which a run with
/// even costs would send: so that every pair of ranks sends and receives in one order, a receipt is under way while the
/// rank still computes, and nobody waits in a circle. Stages on one rank hand over without transfers. Throws as
/// requireValid; Error(badUse) where the schedule has transfers already.
Schedule lowerSchedule(const Schedule& schedule, const LoweringOptions& options = {});

/// Replaces each I that its W follows at once by a B.
Schedule mergeBackward(Schedule schedule);

}  // namespace retrograd

#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "core/ranks/transport.h"
#include "core/schedule/schedule_dependencies.h"

namespace retrograd {

/// One direction over one edge between stages, for one microbatch: what goes over it is one message.
struct Border {
  bool forward;
  std::int32_t from, to, microbatch;
  auto operator<=>(const Border&) const = default;
};

/// The stages that give `stage` something forward, or backward, and those that take something from it.
const std::vector<std::int32_t>& givers(const ScheduleDependencies& dependencies, bool forward, std::int32_t stage);
const std::vector<std::int32_t>& takers(const ScheduleDependencies& dependencies, bool forward, std::int32_t stage);

/// Messages between ranks of a lowered schedule, by who sends and who receives, in the order in which they are sent.
using Traffic = std::map<std::pair<int, int>, std::vector<Border>>;
Traffic trafficOf(const Schedule& schedule);

/// Who sends to whom.
RankPairs rankPairs(const Schedule& schedule);

}  // namespace retrograd

#include "core/ranks/traffic.h"

#include <functional>

namespace retrograd {
namespace {

/// Calls `visit` for each transfer of a row, also where it is part of an overlap.
void eachTransfer(const std::vector<Action>& actions, const std::function<void(const Action&)>& visit) {
  for (const auto& action : actions) {
    eachTransfer(action.parts, visit);
    if (transfers(action.kind)) visit(action);
  }
}

}  // namespace

const std::vector<std::int32_t>& givers(const ScheduleDependencies& dependencies, bool forward, std::int32_t stage) {
  return forward ? dependencies.sources(stage) : dependencies.consumers(stage);
}

const std::vector<std::int32_t>& takers(const ScheduleDependencies& dependencies, bool forward, std::int32_t stage) {
  return givers(dependencies, !forward, stage);
}

Traffic trafficOf(const Schedule& schedule) {
  const ScheduleDependencies dependencies(schedule);
  const auto rankOf = [&](std::int32_t stage) { return schedule.rankOfStage[stage]; };
  Traffic traffic;
  const auto add = [&](const Action& action) {
    const bool forward = action.kind == ActionKind::sendForward;
    if (!forward && action.kind != ActionKind::sendBackward) return;
    for (const auto taker : takers(dependencies, forward, action.stage))
      if (!dependencies.together(action.stage, taker))
        traffic[{rankOf(action.stage), rankOf(taker)}].push_back({forward, action.stage, taker, action.microbatch});
  };
  for (const auto& row : schedule.ranks) eachTransfer(row, add);
  return traffic;
}

RankPairs rankPairs(const Schedule& schedule) {
  RankPairs pairs;
  for (const auto& [pair, borders] : trafficOf(schedule)) pairs.push_back(pair);
  return pairs;
}

}  // namespace retrograd

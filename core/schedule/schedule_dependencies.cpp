#include "core/schedule/schedule_dependencies.h"

#include <algorithm>

#include "core/base/error.h"

namespace retrograd {

ScheduleDependencies::ScheduleDependencies(const Schedule& schedule)
    : schedule_(schedule), sources_(schedule.stages), consumers_(schedule.stages) {
  for (const auto& [source, consumer] : schedule.allEdges()) {
    if (source < 0 || consumer <= source || consumer >= schedule.stages)
      badUse("an edge leads from a stage to a later one of the schedule", schedule.name);
    sources_[consumer].push_back(source);
    consumers_[source].push_back(consumer);
  }
  for (const auto& row : schedule.ranks)
    for (const auto& action : row) hasTransfers_ = hasTransfers_ || transfers(action.kind);
}

bool ScheduleDependencies::together(std::int32_t a, std::int32_t b) const {
  return schedule_.rankOfStage[a] == schedule_.rankOfStage[b];
}

void ScheduleDependencies::addNeeds(const Action& action, std::vector<Fact>& needs) const {
  const auto stage = action.stage, microbatch = action.microbatch;
  const auto all = [&](ActionKind kind, const std::vector<std::int32_t>& stages) {
    for (const auto other : stages) needs.push_back({kind, other, microbatch});
  };
  // What neighbours on this rank made, and one receipt for what all others made.
  const auto arrived = [&](ActionKind made, ActionKind received, const std::vector<std::int32_t>& stages) {
    bool receives = false;
    for (const auto other : stages) {
      if (hasTransfers_ && !together(stage, other)) receives = true;
      else needs.push_back({made, other, microbatch});
    }
    if (receives) needs.push_back({received, stage, microbatch});
  };
  const auto remote = [&](ActionKind sent, const std::vector<std::int32_t>& stages) {
    for (const auto other : stages)
      if (!together(stage, other)) needs.push_back({sent, other, microbatch});
  };
  switch (action.kind) {
    case ActionKind::forward: return arrived(ActionKind::forward, ActionKind::recvForward, sources(stage));
    case ActionKind::backward:
    case ActionKind::backwardInput:
      needs.push_back({ActionKind::forward, stage, microbatch});
      return arrived(ActionKind::backwardInput, ActionKind::recvBackward, consumers(stage));
    case ActionKind::backwardWeight: return needs.push_back({ActionKind::backwardInput, stage, microbatch});
    case ActionKind::sendForward: return needs.push_back({ActionKind::forward, stage, microbatch});
    case ActionKind::sendBackward: return needs.push_back({ActionKind::backwardInput, stage, microbatch});
    case ActionKind::recvForward: return remote(ActionKind::sendForward, sources(stage));
    case ActionKind::recvBackward: return remote(ActionKind::sendBackward, consumers(stage));
    case ActionKind::waitSendForward: return all(ActionKind::sendForward, {stage});
    case ActionKind::waitSendBackward: return all(ActionKind::sendBackward, {stage});
    case ActionKind::reduceGrad:
      for (std::int32_t each = 0; each < schedule_.microbatches; ++each)
        needs.push_back({ActionKind::backwardWeight, stage, each});
      return;
    case ActionKind::waitReduceGrad: return needs.push_back({ActionKind::reduceGrad, stage, -1});
    case ActionKind::unshard:
    case ActionKind::reshard: return;
    case ActionKind::overlap:
      for (const auto& part : action.parts) addNeeds(part, needs);
      return;
  }
}

std::vector<Fact> ScheduleDependencies::needs(const Action& action) const {
  std::vector<Fact> result;
  addNeeds(action, result);
  if (action.kind != ActionKind::overlap) return result;
  const auto inside = does(action);
  std::erase_if(result, [&](const Fact& need) {
    return std::any_of(inside.begin(), inside.end(), [&](const Fact& fact) { return fact.key() == need.key(); });
  });
  return result;
}

std::vector<Fact> ScheduleDependencies::does(const Action& action) {
  switch (action.kind) {
    case ActionKind::backward:
      return {{ActionKind::backwardInput, action.stage, action.microbatch},
              {ActionKind::backwardWeight, action.stage, action.microbatch}};
    case ActionKind::overlap: {
      std::vector<Fact> all;
      for (const auto& part : action.parts)
        for (const auto& fact : does(part)) all.push_back(fact);
      return all;
    }
    case ActionKind::unshard:
    case ActionKind::reshard: return {};
    default: return {{action.kind, action.stage, action.microbatch}};
  }
}

}  // namespace retrograd

#include "core/schedule/schedule_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/schedule/schedule_check.h"
#include "core/schedule/schedule_dependencies.h"

namespace retrograd {
namespace {

class Simulator {
 public:
  Simulator(const Schedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule), costs_(costs), dependencies_(schedule) {
    result_.ranks.resize(schedule.ranks.size());
    loads_.resize(schedule.ranks.size());
    for (const auto& [edge, forward, backward] : costs.edges) {
      travel_[{edge.source, edge.consumer}] = forward;
      travel_[{edge.consumer, edge.source}] = backward;
    }
  }

  Simulation run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < loads_.size(); ++rank)
        while (step(rank)) progress = true;
    }
    double busy = 0;
    for (const auto& rank : result_.ranks) busy += rank.busy;
    const auto available = result_.makespan * static_cast<double>(result_.ranks.size());
    result_.bubble = available > 0 ? 1 - busy / available : 0;
    return std::move(result_);
  }

 private:
  struct Load {
    std::size_t position = 0;
    double free = 0;  ///< when the rank can begin its next action
    std::int32_t inFlight = 0;
    std::int64_t bytes = 0;
  };

  const StageCost& cost(std::int32_t stage) const {
    static const StageCost unit;
    return costs_.stages.empty() ? unit : costs_.stages[costs_.stages.size() == 1 ? 0 : stage];
  }
  double duration(const Action& action) const {
    switch (action.kind) {
      case ActionKind::forward: return cost(action.stage).forward;
      case ActionKind::backward: return cost(action.stage).backward;
      case ActionKind::backwardInput: return cost(action.stage).backwardInput;
      case ActionKind::backwardWeight: return cost(action.stage).backwardWeight;
      case ActionKind::overlap: {
        double sum = 0, longest = 0;
        for (const auto& part : action.parts) sum += duration(part), longest = std::max(longest, duration(part));
        return costs_.overlapHides ? longest : sum;
      }
      default: return 0;
    }
  }

  /// When all that `action` needs is there; nothing while some of it is not known yet.
  std::optional<double> ready(std::int32_t rank, const Action& action) const {
    double time = 0;
    for (const auto& need : dependencies_.needs(action)) {
      const auto found = done_.find(need.key());
      if (found == done_.end()) return std::nullopt;
      time = std::max(time, found->second + underWay(rank, need, action));
    }
    return time;
  }

  /// How long what `need` made is on its way to `action`.
  double underWay(std::int32_t rank, const Fact& need, const Action& action) const {
    switch (action.kind) {
      case ActionKind::recvForward:
      case ActionKind::recvBackward: return travel(need.stage, action.stage);
      case ActionKind::waitSendForward:
      case ActionKind::waitSendBackward: return travelFrom(action.stage, action.kind == ActionKind::waitSendForward);
      default:
        return dependencies_.hasTransfers() || schedule_.rankOfStage[need.stage] == rank
                   ? 0
                   : travel(need.stage, action.stage);
    }
  }

  /// From the end of one stage to its arrival at another: its values at a later one, gradients at an earlier one.
  double travel(std::int32_t from, std::int32_t to) const {
    const auto found = travel_.find({from, to});
    return found == travel_.end() ? costs_.transfer : found->second;
  }

  /// What a stage sends takes until the last of those that it is for has it.
  double travelFrom(std::int32_t stage, bool forward) const {
    if (schedule_.edges.empty()) return travel(stage, stage + (forward ? 1 : -1));
    double longest = 0;
    for (const auto& [source, consumer] : schedule_.edges)
      if ((forward ? source : consumer) == stage)
        longest = std::max(longest, forward ? travel(source, consumer) : travel(consumer, source));
    return longest;
  }

  bool step(std::size_t rank) {
    auto& load = loads_[rank];
    if (load.position == schedule_.ranks[rank].size()) return false;
    const auto& action = schedule_.ranks[rank][load.position];
    const auto time = ready(static_cast<std::int32_t>(rank), action);
    if (!time) return false;
    // A receipt is waited for by what reads it, not by the rank.
    const bool receives = action.kind == ActionKind::recvForward || action.kind == ActionKind::recvBackward;
    const auto start = receives ? load.free : std::max(load.free, *time);
    const auto end = receives ? std::max(start, *time) : start + duration(action);
    record(rank, action, start, end);
    if (!receives) {
      result_.ranks[rank].busy += end - start;
      load.free = end;
    }
    ++load.position;
    return true;
  }

  /// Others can use what an overlap makes when all of it is over.
  void record(std::size_t rank, const Action& action, double start, double end) {
    for (const auto& fact : ScheduleDependencies::does(action)) done_[fact.key()] = end;
    result_.makespan = std::max(result_.makespan, end);
    auto& timeline = result_.ranks[rank].actions;
    const auto position = loads_[rank].position;
    if (action.kind != ActionKind::overlap) {
      timeline.push_back({action, start, end, false, position});
      return count(rank, action);
    }
    for (auto from = start; const auto& part : action.parts) {
      timeline.push_back({part, from, from + duration(part), true, position});
      if (!costs_.overlapHides) from += duration(part);
      count(rank, part);
    }
  }

  void count(std::size_t rank, const Action& action) {
    auto& load = loads_[rank];
    auto& timeline = result_.ranks[rank];
    if (action.kind == ActionKind::forward) {
      timeline.peakInFlight = std::max(timeline.peakInFlight, ++load.inFlight);
      timeline.peakBytes = std::max(timeline.peakBytes, load.bytes += cost(action.stage).activationBytes);
    } else if (action.kind == ActionKind::backward || action.kind == ActionKind::backwardWeight) {
      --load.inFlight;
      load.bytes -= cost(action.stage).activationBytes;
    }
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  ScheduleDependencies dependencies_;
  Simulation result_;
  std::vector<Load> loads_;
  std::map<std::pair<std::int32_t, std::int32_t>, double> travel_;  ///< from one stage to another
  std::unordered_map<std::uint64_t, double> done_;
};

void requireFit(const Schedule& schedule, const ScheduleCosts& costs) {
  if (costs.stages.size() > 1 && std::ssize(costs.stages) != schedule.stages)
    badUse(fmt::format("costs of {} stages for a schedule of {}: give one for each, or one for all",
                       costs.stages.size(), schedule.stages),
           schedule.name);
  const auto good = [](double time) { return std::isfinite(time) && time >= 0; };
  bool fit = good(costs.transfer);
  for (const auto& stage : costs.stages)
    fit = fit && good(stage.forward) && good(stage.backward) && good(stage.backwardInput) &&
          good(stage.backwardWeight) && stage.activationBytes >= 0;
  for (const auto& [edge, forward, backward] : costs.edges) {
    if (edge.source < 0 || edge.source >= edge.consumer || edge.consumer >= schedule.stages)
      badUse(fmt::format("costs of an edge from stage {} to stage {}: edges go to a later one of the {} stages",
                         edge.source, edge.consumer, schedule.stages),
             schedule.name);
    fit = fit && good(forward) && good(backward);
  }
  if (!fit) badUse("times and bytes of a stage are finite and not negative", schedule.name);
}

}  // namespace

Simulation simulate(const Schedule& schedule, const ScheduleCosts& costs) {
  requireFit(schedule, costs);
  requireValid(schedule);
  return Simulator(schedule, costs).run();
}

}  // namespace retrograd

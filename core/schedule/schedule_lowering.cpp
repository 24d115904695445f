#include "core/schedule/schedule_lowering.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/base/error.h"
#include "core/schedule/schedule_check.h"
#include "core/schedule/schedule_dependencies.h"
#include "core/schedule/schedule_simulation.h"

namespace retrograd {
namespace {

/// A transfer, and when it takes place in a run with even costs.
struct Transfer {
  double time;
  Action action;
};

class Lowering {
 public:
  Lowering(const Schedule& schedule, const LoweringOptions& options)
      : schedule_(schedule),
        options_(options),
        dependencies_(schedule),
        run_(simulate(schedule)),
        receipts_(schedule.ranks.size()) {}

  Schedule lower() {
    if (dependencies_.hasTransfers()) badUse("the schedule has its transfers already", schedule_.name);
    planReceipts();
    std::vector<std::vector<Action>> rows;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) rows.push_back(lowerRow(rank));
    auto result = scheduleOf(schedule_.name, std::move(rows));
    result.edges = schedule_.edges;
    requireValid(result);
    return result;
  }

 private:
  bool anyRemote(std::int32_t stage, const std::vector<std::int32_t>& others) const {
    return std::any_of(others.begin(), others.end(),
                       [&](std::int32_t other) { return !dependencies_.together(stage, other); });
  }

  /// What leaves the rank once `action` is done.
  std::vector<Action> sends(const Action& action) const {
    std::vector<Action> result;
    if (action.kind == ActionKind::overlap)
      for (const auto& part : action.parts)
        for (auto& send : sends(part)) result.push_back(std::move(send));
    if (action.kind == ActionKind::forward && anyRemote(action.stage, dependencies_.consumers(action.stage)))
      result.push_back({ActionKind::sendForward, action.stage, action.microbatch, {}});
    if ((action.kind == ActionKind::backward || action.kind == ActionKind::backwardInput) &&
        anyRemote(action.stage, dependencies_.sources(action.stage)))
      result.push_back({ActionKind::sendBackward, action.stage, action.microbatch, {}});
    return result;
  }

  /// A receipt per stage, direction and microbatch, when the last of its senders is done.
  void planReceipts() {
    std::map<std::pair<std::int32_t, std::int32_t>, double> arrivals[2];  // by stage and microbatch
    for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      std::unordered_map<std::size_t, double> ends;
      for (const auto& timed : run_.ranks[rank].actions)
        ends[timed.position] = std::max(ends[timed.position], timed.end);
      for (std::size_t position = 0; position < schedule_.ranks[rank].size(); ++position)
        for (const auto& send : sends(schedule_.ranks[rank][position])) {
          const bool forward = send.kind == ActionKind::sendForward;
          for (const auto other : forward ? dependencies_.consumers(send.stage) : dependencies_.sources(send.stage)) {
            if (dependencies_.together(send.stage, other)) continue;
            auto& time = arrivals[forward ? 0 : 1][{other, send.microbatch}];
            time = std::max(time, ends[position]);
          }
        }
    }
    for (const bool forward : {true, false})
      for (const auto& [which, time] : arrivals[forward ? 0 : 1]) {
        const std::size_t rank = schedule_.rankOfStage[which.first];
        receipts_[rank].push_back(
            {time, {forward ? ActionKind::recvForward : ActionKind::recvBackward, which.first, which.second, {}}});
      }
    for (auto& row : receipts_)
      std::stable_sort(row.begin(), row.end(), [](const Transfer& a, const Transfer& b) { return a.time < b.time; });
  }

  std::vector<Action> lowerRow(std::size_t rank) {
    std::unordered_map<std::size_t, double> starts;
    for (const auto& timed : run_.ranks[rank].actions) starts.try_emplace(timed.position, timed.start);
    const auto& row = schedule_.ranks[rank];
    std::vector<Action> result;
    auto receipt = receipts_[rank].begin();
    for (std::size_t position = 0; position < row.size(); ++position) {
      for (; receipt != receipts_[rank].end() && receipt->time <= starts.at(position); ++receipt)
        result.push_back(receipt->action);
      result.push_back(row[position]);
      for (auto& send : sends(row[position])) result.push_back(std::move(send));
      if (const auto reduced = reduction(row, position)) result.push_back({ActionKind::reduceGrad, *reduced, -1, {}});
    }
    return result;
  }

  /// The stage to be reduced whose last backward is here.
  std::optional<std::int32_t> reduction(const std::vector<Action>& row, std::size_t position) {
    if (lastOf_.empty()) countBackwards();
    const auto finishes = [&](const Action& action) {
      return (action.kind == ActionKind::backward || action.kind == ActionKind::backwardWeight) &&
             --lastOf_[action.stage] == 0 &&
             std::find(options_.reduceGrads.begin(), options_.reduceGrads.end(), action.stage) !=
                 options_.reduceGrads.end();
    };
    const auto& action = row[position];
    if (finishes(action)) return action.stage;
    for (const auto& part : action.parts)
      if (finishes(part)) return part.stage;
    return std::nullopt;
  }
  void countBackwards() {
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage) lastOf_[stage] = schedule_.microbatches;
  }

  const Schedule& schedule_;
  const LoweringOptions& options_;
  ScheduleDependencies dependencies_;
  Simulation run_;
  std::vector<std::vector<Transfer>> receipts_;            // by rank, in time
  std::unordered_map<std::int32_t, std::int32_t> lastOf_;  // by stage: backwards that are still to come
};

}  // namespace

Schedule mergeBackward(Schedule schedule) {
  for (auto& row : schedule.ranks) {
    std::vector<Action> merged;
    for (auto& action : row) {
      const bool follows = !merged.empty() && merged.back().kind == ActionKind::backwardInput &&
                           action.kind == ActionKind::backwardWeight && merged.back().stage == action.stage &&
                           merged.back().microbatch == action.microbatch;
      if (follows) merged.back().kind = ActionKind::backward;
      else merged.push_back(std::move(action));
    }
    row = std::move(merged);
  }
  return schedule;
}

Schedule lowerSchedule(const Schedule& schedule, const LoweringOptions& options) {
  if (!options.mergeBackward) return Lowering(schedule, options).lower();
  const auto merged = mergeBackward(schedule);
  return Lowering(merged, options).lower();
}

}  // namespace retrograd

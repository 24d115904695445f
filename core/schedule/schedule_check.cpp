#include "core/schedule/schedule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace retrograd {
namespace {

struct Place {
  std::int32_t rank;
  std::size_t position;
  ActionKind kind;  ///< B where it does the fact of an I or W
};

std::string placeOf(std::int32_t rank, std::size_t position, const Action& action) {
  return fmt::format("rank {}, action {} ({})", rank, position + 1, text(action));
}

std::string describe(const WaitingRank& waiting) {
  if (waiting.neededRank < 0) return fmt::format("it needs {}, which no rank does", waiting.needed);
  if (waiting.neededRank == waiting.rank)
    return fmt::format("it needs {}, which comes later on the same rank", waiting.needed);
  return fmt::format("it needs {} of rank {}", waiting.needed, waiting.neededRank);
}

class Checker {
 public:
  explicit Checker(const Schedule& schedule) : schedule_(schedule), dependencies_(schedule) {}

  ScheduleCheck check() {
    if (schedule_.stages == 0) report("the schedule has no action", {});
    collect();
    if (!result_.ok()) return std::move(result_);
    run();
    if (result_.ok()) requireComplete();
    return std::move(result_);
  }

 private:
  void report(std::string message, std::string place) {
    result_.problems.push_back({Problem::Severity::error, std::move(message), std::move(place), -1});
  }

  /// Where everything is done; anything that is done twice, or on a rank that does not hold the stage, is a problem.
  void collect() {
    for (std::size_t row = 0; row < schedule_.ranks.size(); ++row)
      for (std::size_t i = 0; i < schedule_.ranks[row].size(); ++i)
        collect(schedule_.ranks[row][i], static_cast<std::int32_t>(row), i);
  }
  void collect(const Action& action, std::int32_t rank, std::size_t position) {
    if (action.kind == ActionKind::overlap) {
      const bool plain = !action.parts.empty() && std::all_of(action.parts.begin(), action.parts.end(),
                                                              [](const Action& a) { return computes(a.kind); });
      if (!plain)
        return report("only F, B, I and W overlap, and there is at least one", placeOf(rank, position, action));
      for (const auto& part : action.parts) collect(part, rank, position);
      return;
    }
    const auto home = schedule_.rankOfStage[action.stage];
    if (home != rank) {
      report(home < 0 ? fmt::format("no rank computes stage {}", action.stage)
                      : fmt::format("stage {} is on rank {}: a stage is on one rank", action.stage, home),
             placeOf(rank, position, action));
      return;
    }
    for (const auto& fact : ScheduleDependencies::does(action)) {
      const auto [first, added] = places_.try_emplace(fact.key(), Place{rank, position, action.kind});
      if (added) continue;
      report(fmt::format("it is done twice: first by action {}", first->second.position + 1),
             placeOf(rank, position, action));
      return;  // a B does two facts; one report is enough
    }
  }

  bool isDone(const Fact& fact) const { return done_.contains(fact.key()); }

  /// The first thing that `action` has to wait for.
  std::optional<Fact> missing(const Action& action) const {
    for (const auto& need : dependencies_.needs(action))
      if (!isDone(need)) return need;
    return std::nullopt;
  }

  bool step(std::size_t rank) {
    const auto& row = schedule_.ranks[rank];
    const auto before = positions_[rank];
    for (; positions_[rank] < row.size() && !missing(row[positions_[rank]]); ++positions_[rank])
      for (const auto& fact : ScheduleDependencies::does(row[positions_[rank]])) done_.insert(fact.key());
    return positions_[rank] != before;
  }

  void run() {
    positions_.assign(schedule_.ranks.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) progress = step(rank) || progress;
    }
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank)
      if (positions_[rank] < schedule_.ranks[rank].size()) result_.waiting.push_back(waitingAt(rank));
    if (!result_.waiting.empty()) reportDeadlock();
  }

  WaitingRank waitingAt(std::size_t rank) const {
    WaitingRank waiting;
    waiting.rank = static_cast<std::int32_t>(rank);
    waiting.position = positions_[rank];
    waiting.action = schedule_.ranks[rank][waiting.position];
    waiting.needs = *missing(waiting.action);
    Action needed{waiting.needs.kind, waiting.needs.stage, waiting.needs.microbatch, {}};
    if (const auto place = places_.find(waiting.needs.key()); place != places_.end()) {
      needed.kind = place->second.kind;
      waiting.neededRank = place->second.rank;
    } else if (needed.kind == ActionKind::backwardInput) {
      needed.kind = ActionKind::backward;
    }
    waiting.needed = text(needed);
    return waiting;
  }

  /// The root comes first: what nobody does, forwards before the backwards that they lead to; then what comes later on
  /// the rank that waits for it; else the ranks wait in a circle.
  void reportDeadlock() {
    const auto weight = [](const WaitingRank& waiting) {
      if (waiting.neededRank < 0) return waiting.needs.kind == ActionKind::forward ? 0 : 1;
      return waiting.neededRank == waiting.rank ? 2 : 3;
    };
    std::stable_sort(result_.waiting.begin(), result_.waiting.end(),
                     [&](const WaitingRank& a, const WaitingRank& b) { return weight(a) < weight(b); });
    for (const auto& waiting : result_.waiting) {
      const auto first = &waiting == &result_.waiting.front();
      report(first ? "deadlock: " + describe(waiting) : describe(waiting),
             placeOf(waiting.rank, waiting.position, waiting.action));
    }
  }

  void requireComplete() {
    for (std::int32_t stage = 0; stage < schedule_.stages; ++stage)
      for (std::int32_t microbatch = 0; microbatch < schedule_.microbatches; ++microbatch)
        for (const auto kind : {ActionKind::forward, ActionKind::backwardInput, ActionKind::backwardWeight})
          if (const Fact fact{kind, stage, microbatch}; !isDone(fact)) {
            const auto place = schedule_.rankOfStage[stage];
            const auto what = kind == ActionKind::forward         ? "forward"
                              : kind == ActionKind::backwardInput ? "backward"
                                                                  : "weight gradient";
            report(fmt::format("stage {} has no {} of microbatch {}", stage, what, microbatch),
                   place < 0 ? std::string{} : fmt::format("rank {}", place));
            return;  // the others follow from the same mistake as a rule
          }
  }

  const Schedule& schedule_;
  ScheduleDependencies dependencies_;
  ScheduleCheck result_;
  std::unordered_map<std::uint64_t, Place> places_;
  std::unordered_set<std::uint64_t> done_;
  std::vector<std::size_t> positions_;
};

}  // namespace

ScheduleCheck checkSchedule(const Schedule& schedule) { return Checker(schedule).check(); }

void requireValid(const Schedule& schedule) {
  const auto check = checkSchedule(schedule);
  if (check.ok()) return;
  std::string message = check.problems.front().message;
  if (!check.waiting.empty())
    for (std::size_t i = 1; i < std::min<std::size_t>(check.problems.size(), 8); ++i)
      message += fmt::format("; {}: {}", check.problems[i].place, check.problems[i].message);
  badInput(message, fmt::format("{}, {}", schedule.name, check.problems.front().place));
}

}  // namespace retrograd

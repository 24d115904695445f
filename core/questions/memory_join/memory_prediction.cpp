#include "core/questions/memory_join/memory_prediction.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>

namespace retrograd {
namespace {

/// A traced allocation is live after the ops [begin, end).
std::size_t endOf(const TracedAllocation& traced) {
  using Use = TracedAllocation::Use;
  if (traced.use == Use::gradient || traced.use == Use::result) return std::numeric_limits<std::size_t>::max();
  return std::max(traced.lastRead, traced.position) + 1;
}

class Prediction {
 public:
  explicit Prediction(const MemoryJoin& join) : join_(join) {
    for (const auto& traced : join.trace.allocations) {
      changes_.emplace_back(traced.position, static_cast<std::int64_t>(traced.bytes));
      if (const auto end = endOf(traced); end != std::numeric_limits<std::size_t>::max())
        changes_.emplace_back(end, -static_cast<std::int64_t>(traced.bytes));
    }
    std::ranges::sort(changes_);
    std::int64_t live = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      live += changes_[i].second;
      const bool isLast = i + 1 == changes_.size() || changes_[i + 1].first != changes_[i].first;
      if (isLast) live_.emplace_back(changes_[i].first, live);
    }
    steps_.resize(join.steps);
    for (std::size_t i = 0; i < join.allocations.size(); ++i) {
      const auto& each = join.allocations[i];
      if (each.step >= 0 && static_cast<std::size_t>(each.step) < steps_.size()) steps_[each.step].push_back(i);
      const auto size = static_cast<std::int64_t>(each.what.size);
      held_.emplace_back(each.what.from, size);
      if (each.what.to >= 0) held_.emplace_back(each.what.to, -size);
    }
    std::ranges::sort(held_, {}, [](const auto& change) { return change.first; });
    std::int64_t sum = 0;
    for (auto& [event, bytes] : held_) bytes = sum += bytes;
  }

  MemoryPrediction run(std::int64_t peakEvent) {
    MemoryPrediction answer;
    for (std::int32_t step = 0; step < static_cast<std::int32_t>(join_.steps); ++step) {
      findStep(step);
      answer.steps.push_back(predicted());
      if (peakEvent >= first_ && peakEvent <= last_) explain(answer, step, peakEvent);
    }
    return answer;
  }

 private:
  /// Bytes that the trace has live after the op at a position.
  std::int64_t liveAt(std::size_t position) const {
    const auto after = std::ranges::upper_bound(live_, position, {}, [](const auto& each) { return each.first; });
    return after == live_.begin() ? 0 : std::prev(after)->second;
  }

  void findStep(std::int32_t step) {
    first_ = std::numeric_limits<std::int64_t>::max();
    last_ = HeldAllocation::outside;
    positions_.clear();
    for (const auto i : steps_[step]) {
      const auto& each = join_.allocations[i];
      first_ = std::min(first_, std::int64_t{each.what.from});
      last_ = std::max(last_, std::int64_t{each.what.from});
      if (each.traced >= 0 && !each.recomputed)
        positions_.emplace_back(each.what.from, join_.trace.allocations[each.traced].position);
    }
    std::ranges::sort(positions_);
    const auto after = std::ranges::lower_bound(held_, first_, {}, [](const auto& change) { return change.first; });
    before_ = after == held_.begin() ? 0 : static_cast<std::uint64_t>(std::prev(after)->second);
  }

  PredictedStep predicted() const {
    PredictedStep step;
    for (const auto& [event, position] : positions_) {
      const auto bytes = before_ + static_cast<std::uint64_t>(std::max<std::int64_t>(liveAt(position), 0));
      step.line.emplace_back(event, bytes);
      step.peakBytes = std::max(step.peakBytes, bytes);
    }
    return step;
  }

  /// The op that had run last by an event, as far as the join says.
  std::size_t positionAt(std::int64_t event) const {
    const auto after = std::ranges::upper_bound(positions_, event, {}, [](const auto& each) { return each.first; });
    return after == positions_.begin() ? 0 : std::prev(after)->second;
  }

  void explain(MemoryPrediction& answer, std::int32_t number, std::int64_t event) const {
    const auto position = positionAt(event);
    std::map<std::string, std::int64_t> gaps;
    std::vector<bool> isThere(join_.trace.allocations.size());
    answer.event = event;
    answer.predictedBytes = before_;
    for (const auto& each : join_.allocations) {
      const auto size = static_cast<std::int64_t>(each.what.size);
      const bool isHeld = each.what.isHeldAfter(event);
      if (isHeld) answer.recordedBytes += each.what.size;
      if (each.what.isHeldAfter(first_ - 1)) {
        if (!isHeld) gaps["let go since the step began: " + holderOf(join_, each)] -= size;
        continue;
      }
      if (!isHeld) continue;
      if (each.step != number || each.traced < 0 || each.recomputed) {
        gaps[holderOf(join_, each)] += size;
        continue;
      }
      const auto& traced = join_.trace.allocations[each.traced];
      gaps["rounding by the allocator"] += size - static_cast<std::int64_t>(traced.bytes);
      if (traced.position <= position && position < endOf(traced)) isThere[each.traced] = true;
      else gaps["held after the last reader"] += static_cast<std::int64_t>(traced.bytes);
    }
    for (std::size_t i = 0; i < isThere.size(); ++i) {
      const auto& traced = join_.trace.allocations[i];
      if (position < traced.position || position >= endOf(traced)) continue;
      answer.predictedBytes += traced.bytes;
      if (!isThere[i]) gaps["predicted, and not held"] -= static_cast<std::int64_t>(traced.bytes);
    }
    for (const auto& [reason, bytes] : gaps)
      if (bytes != 0) answer.gaps.push_back({reason, bytes});
    std::ranges::stable_sort(answer.gaps, std::greater(), [](const PredictionGap& gap) { return std::abs(gap.bytes); });
  }

  const MemoryJoin& join_;
  std::vector<std::pair<std::size_t, std::int64_t>> changes_, live_;  // by position
  std::vector<std::pair<std::int64_t, std::int64_t>> held_;           // of the history: bytes after an event
  std::vector<std::vector<std::size_t>> steps_;                       // of each step: its allocations
  // Of the step that is looked at:
  std::int64_t first_ = 0, last_ = 0;
  std::uint64_t before_ = 0;
  std::vector<std::pair<std::int64_t, std::size_t>> positions_;  // of ops, by event
};

}  // namespace

std::int32_t stepWith(const MemoryJoin& join, std::int64_t event) {
  const auto last = static_cast<std::int32_t>(join.steps) - 1;
  std::int32_t step = -1;
  for (const auto& each : join.allocations)
    if (each.step <= last && each.what.from <= event) step = std::max(step, each.step);
  return step < 0 ? last : step;
}

std::int64_t eventAfter(const MemoryJoin& join, std::int32_t step, std::size_t position) {
  auto first = HeldAllocation::outside, last = HeldAllocation::outside;
  for (const auto& each : join.allocations) {
    if (each.step != step) continue;
    last = std::max(last, std::int64_t{each.what.from});
    if (each.traced < 0 || each.recomputed) continue;
    const auto at = join.trace.allocations[each.traced].position;
    if (at >= position && (first < 0 || each.what.from < first)) first = each.what.from;
  }
  return first < 0 ? last : first - 1;
}

MemoryPrediction memoryPrediction(const MemoryJoin& join, std::int64_t peakEvent) {
  return Prediction(join).run(peakEvent);
}

}  // namespace retrograd

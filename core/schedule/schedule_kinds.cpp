#include "core/schedule/schedule_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <map>

#include "core/base/error.h"
#include "core/schedule/schedule_check.h"

namespace retrograd {
namespace {

using Row = std::vector<Action>;

constexpr std::int64_t largestCount = 4'000'000;  // stages times microbatches

/// Appends actions of a rank and counts the microbatches of each stage and kind, which are always taken in order.
class RowWriter {
 public:
  Action next(ActionKind kind, std::int32_t stage) {
    auto& count = counts_[{static_cast<int>(kind == ActionKind::backwardInput ? ActionKind::backward : kind), stage}];
    return {kind, stage, count++, {}};
  }
  void add(ActionKind kind, std::int32_t stage) { row.push_back(next(kind, stage)); }
  void forward(std::int32_t stage) { add(ActionKind::forward, stage); }
  /// I; its W is in a queue until weight() is called.
  void input(std::int32_t stage) {
    add(ActionKind::backwardInput, stage);
    waiting.push_back({ActionKind::backwardWeight, stage, row.back().microbatch, {}});
  }
  /// The W that has waited longest.
  void weight() {
    row.push_back(waiting.front());
    waiting.pop_front();
  }
  void overlap(std::int32_t forwardStage, std::int32_t backwardStage) {
    Action both{ActionKind::overlap, -1, -1, {}};
    both.parts.push_back(next(ActionKind::forward, forwardStage));
    both.parts.push_back(next(ActionKind::backward, backwardStage));
    row.push_back(std::move(both));
  }

  Row row;
  std::deque<Action> waiting;

 private:
  std::map<std::pair<int, std::int32_t>, std::int32_t> counts_;
};

/// GPipe (Huang et al., 2019): all forwards, then all backwards, in the same order.
Row gpipe(const ScheduleSize& size, std::int32_t rank) {
  Row row;
  for (const auto kind : {ActionKind::forward, ActionKind::backward})
    for (std::int32_t microbatch = 0; microbatch < size.microbatches; ++microbatch)
      row.push_back({kind, rank, microbatch, {}});
  return row;
}

/// Breadth first over the stages of a rank (Lamy-Poirier, 2022); the backward goes the same way in reverse.
Row loopedBfs(const ScheduleSize& size, std::int32_t rank) {
  Row row;
  for (std::int32_t local = 0; local < size.stagesPerRank; ++local)
    for (std::int32_t microbatch = 0; microbatch < size.microbatches; ++microbatch)
      row.push_back({ActionKind::forward, local * size.ranks + rank, microbatch, {}});
  for (auto i = row.size(); i-- > 0;) row.push_back({ActionKind::backward, row[i].stage, row[i].microbatch, {}});
  return row;
}

/// Microbatches go through a rank's stages in rounds of about as many as there are ranks: a round through the first
/// stage, the same round through the second, and so on. Rounds differ in size by one at most, the larger ones first.
std::vector<std::int32_t> rounds(const ScheduleSize& size) {
  const auto count = std::max(1, size.microbatches / size.ranks);
  std::vector<std::int32_t> sizes(count, size.microbatches / count);
  for (std::int32_t i = 0; i < size.microbatches % count; ++i) ++sizes[i];
  return sizes;
}

/// The order of a rank's forwards, or with `reversed` of its backwards, round by round.
Row inRounds(const ScheduleSize& size, std::int32_t rank, ActionKind kind, bool reversed) {
  Row order;
  std::int32_t first = 0;
  for (const auto round : rounds(size)) {
    for (std::int32_t i = 0; i < size.stagesPerRank; ++i) {
      const auto local = reversed ? size.stagesPerRank - 1 - i : i;
      for (auto microbatch = first; microbatch < first + round; ++microbatch)
        order.push_back({kind, local * size.ranks + rank, microbatch, {}});
    }
    first += round;
  }
  return order;
}

/// Some forwards to warm up, then a forward and a backward in turn until the forwards are used up, then the other
/// backwards.
Row weave(const Row& forwards, const Row& backwards, std::size_t warmup) {
  Row row(forwards.begin(), forwards.begin() + warmup);
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    if (warmup + i < forwards.size()) row.push_back(forwards[warmup + i]);
    row.push_back(backwards[i]);
  }
  return row;
}

std::size_t warmupOf(const ScheduleSize& size, std::int32_t rank, std::int32_t perRankBehind) {
  const auto wanted = std::int64_t{size.stagesPerRank - 1} * rounds(size).front() +
                      std::int64_t{perRankBehind} * (size.ranks - 1 - rank);
  return std::min(wanted, std::int64_t{size.stagesPerRank} * size.microbatches);
}

/// One forward, one backward (PipeDream-Flush: Narayanan et al., 2021): a rank keeps as many microbatches in flight as
/// ranks follow it, and one.
Row oneForwardOneBackward(const ScheduleSize& size, std::int32_t rank) {
  return weave(inRounds(size, rank, ActionKind::forward, false), inRounds(size, rank, ActionKind::backward, true),
               warmupOf(size, rank, 1));
}

/// The same with several stages a rank (Narayanan et al., 2021, "interleaved"): two more forwards to warm up for each
/// rank behind.
Row interleaved(const ScheduleSize& size, std::int32_t rank) {
  return weave(inRounds(size, rank, ActionKind::forward, false), inRounds(size, rank, ActionKind::backward, true),
               warmupOf(size, rank, 2));
}

/// Interleaved with the backward split (Qi et al., 2024): I goes on at once, so one forward per rank behind is enough
/// to warm up; each W comes as many I's later as there are ranks before this one, which is the time for which this rank
/// would else wait at the end.
Row interleavedZeroBubble(const ScheduleSize& size, std::int32_t rank) {
  const auto woven = weave(inRounds(size, rank, ActionKind::forward, false),
                           inRounds(size, rank, ActionKind::backwardInput, true), warmupOf(size, rank, 1));
  Row row;
  std::deque<Action> weights;
  for (const auto& action : woven) {
    row.push_back(action);
    if (action.kind != ActionKind::backwardInput) continue;
    weights.push_back({ActionKind::backwardWeight, action.stage, action.microbatch, {}});
    if (std::ssize(weights) <= rank) continue;
    row.push_back(weights.front());
    weights.pop_front();
  }
  row.insert(row.end(), weights.begin(), weights.end());
  return row;
}

/// Zero bubble on a V (Qi et al., 2024, ZB-V): rank r holds stage r on the way down and stage 2P-1-r on the way up. The
/// pattern is made for 2P-1 microbatches or more; with fewer, those that are not there are left out of it.
Row zeroBubbleV(const ScheduleSize& size, std::int32_t rank) {
  const auto ranks = size.ranks, down = rank, up = 2 * ranks - 1 - rank;
  const auto count = std::max(size.microbatches, 2 * ranks - 1);
  RowWriter writer;
  const auto backward = [&](std::int32_t stage) {
    writer.add(ActionKind::backwardInput, stage);
    writer.add(ActionKind::backwardWeight, stage);
  };
  const auto times = [](std::int32_t n, const auto& body) {
    for (std::int32_t i = 0; i < n; ++i) body();
  };
  // Warming up: until the first microbatch comes back up, then one of each way, then backwards of the way up.
  times(2 * (ranks - rank) - 1, [&] { writer.forward(down); });
  times(rank, [&] { writer.forward(up), writer.forward(down); });
  times(ranks - rank, [&] { writer.forward(up), backward(up); });
  // Steady: down and up in turn, each a forward and a backward. 2P-1-r forwards went down before, P came up.
  auto sent = 2 * ranks - 1 - rank;
  times(count - ranks, [&] {
    if (sent < count) writer.forward(down), ++sent;
    backward(down);
    writer.forward(up), backward(up);
  });
  // Running out: the last I's, as early as the others need them, and then the W's that were put off.
  times(rank, [&] { writer.add(ActionKind::backwardInput, down), writer.add(ActionKind::backwardInput, up); });
  times(ranks - rank, [&] { backward(down); });
  times(rank, [&] { writer.add(ActionKind::backwardWeight, up); });
  times(rank, [&] { writer.add(ActionKind::backwardWeight, down); });
  std::erase_if(writer.row, [&](const Action& action) { return action.microbatch >= size.microbatches; });
  return writer.row;
}

/// DualPipe cut in half (DeepSeek-AI, 2025; "DualPipeV" by Qi et al.): on the same V, a forward of one way runs
/// together with a backward of the other, so that one hides the other's transfers. The phases are those of DeepSeek's
/// publication.
Row dualPipeV(const ScheduleSize& size, std::int32_t rank) {
  const auto ranks = size.ranks, behind = ranks - 1 - rank, down = rank, up = 2 * ranks - 1 - rank;
  RowWriter writer;
  const auto times = [](std::int32_t n, const auto& body) {
    for (std::int32_t i = 0; i < n; ++i) body(i);
  };
  times(2 * behind, [&](auto) { writer.forward(down); });
  times(rank + 1, [&](auto) { writer.forward(down), writer.forward(up); });
  times(behind, [&](auto) { writer.input(up), writer.weight(), writer.forward(up); });
  times(size.microbatches - 2 * ranks + rank + 1, [&](std::int32_t i) {
    if (i == 0 && behind == 0) {
      // The rank at the tip of the V hands its first microbatch to itself: nothing is in transit that could be hidden.
      writer.forward(down), writer.add(ActionKind::backward, up);
    } else {
      writer.overlap(down, up);
    }
    writer.overlap(up, down);
  });
  times(behind, [&](auto) { writer.add(ActionKind::backward, up), writer.overlap(up, down); });
  // Backwards only. From half of them on they are split: on even ranks beginning with the way down, on odd ones with
  // the way up.
  const auto half = (rank + 1) / 2;
  const auto late = [&](std::int32_t stage, bool split) {
    split ? writer.input(stage) : writer.add(ActionKind::backward, stage);
  };
  times(rank + 1, [&](std::int32_t i) {
    late(up, i > half || (i == half && rank % 2 == 1));
    late(down, i >= half);
  });
  times(behind, [&](auto) { writer.weight(), writer.input(down); });
  while (!writer.waiting.empty()) writer.weight();
  return writer.row;
}

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

[[noreturn]] void refuse(const ScheduleKind& kind, const std::string& message) {
  badUse(message, std::string(kind.name));
}

void requireSize(const ScheduleKind& kind, const ScheduleSize& size) {
  if (size.ranks < 1 || size.microbatches < 1 || size.stagesPerRank < 1)
    refuse(kind, "ranks, microbatches and stages per rank are numbers from 1");
  if (kind.fixedStagesPerRank && size.stagesPerRank != kind.fixedStagesPerRank)
    refuse(kind, fmt::format("has {} stage{} per rank, not {}", kind.fixedStagesPerRank,
                             kind.fixedStagesPerRank > 1 ? "s" : "", size.stagesPerRank));
  if (std::int64_t{size.ranks} * size.stagesPerRank > largestCount / size.microbatches)
    refuse(kind,
           fmt::format("{} ranks x {} stages x {} microbatches are too many (stages times microbatches: {} at most)",
                       size.ranks, size.stagesPerRank, size.microbatches, largestCount));
  if (kind.row == dualPipeV && size.microbatches < 2 * size.ranks)
    refuse(kind, fmt::format("needs two microbatches per rank or more: at least {} for {} ranks, not {}",
                             2 * size.ranks, size.ranks, size.microbatches));
}

}  // namespace

const std::vector<ScheduleKind>& scheduleKinds() {
  static const std::vector<ScheduleKind> kinds{
      {"GPipe", "all forwards, then all backwards (Huang et al. 2019)", 1, false, gpipe},
      {"1F1B", "one forward, one backward: fewer activations in flight (Narayanan et al. 2021)", 1, false,
       oneForwardOneBackward},
      {"Interleaved1F1B", "1F1B with several stages a rank: a smaller bubble (Narayanan et al. 2021)", 0, false,
       interleaved},
      {"LoopedBFS", "all microbatches through one stage after the other (Lamy-Poirier 2022)", 0, false, loopedBfs},
      {"InterleavedZeroBubble", "interleaved, weight gradients put off into the bubble (Qi et al. 2024)", 0, false,
       interleavedZeroBubble},
      {"ZBVZeroBubble", "zero bubble on a V: a rank holds a stage of either end (Qi et al. 2024)", 2, true,
       zeroBubbleV},
      {"DualPipeV", "on a V, a forward and a backward at a time (DeepSeek-AI 2025)", 2, true, dualPipeV},
  };
  return kinds;
}

const ScheduleKind* findScheduleKind(std::string_view name) {
  auto wanted = lowered(name);
  if (wanted.starts_with("schedule")) wanted.erase(0, 8);
  if (wanted == "zbv") wanted = "zbvzerobubble";
  for (const auto& kind : scheduleKinds())
    if (lowered(kind.name) == wanted) return &kind;
  return nullptr;
}

Schedule makeSchedule(const ScheduleKind& kind, std::int32_t ranks, std::int32_t microbatches,
                      std::int32_t stagesPerRank) {
  const ScheduleSize size{ranks,
                          stagesPerRank             ? stagesPerRank
                          : kind.fixedStagesPerRank ? kind.fixedStagesPerRank
                                                    : 2,
                          microbatches};
  requireSize(kind, size);
  std::vector<Row> rows;
  for (std::int32_t rank = 0; rank < ranks; ++rank) rows.push_back(kind.row(size, rank));
  auto schedule = scheduleOf(std::string(kind.name), std::move(rows));
  const auto check = checkSchedule(schedule);
  if (!check.ok())
    badUse(fmt::format("{} ranks with {} stages each and {} microbatches have no such schedule: {}", ranks,
                       size.stagesPerRank, microbatches, check.problems.front().message),
           std::string(kind.name));
  return schedule;
}

}  // namespace retrograd

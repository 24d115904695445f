#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/error.h"
#include "core/schedule/schedule_check.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"
#include "core/schedule/schedule_simulation.h"

// What holds for every kind of schedule, whatever its numbers of ranks, stages and microbatches.
namespace retrograd {
namespace {

template <typename Visit>
void forSizes(const Visit& visit) {
  for (const auto& kind : scheduleKinds())
    for (const std::int32_t ranks : {1, 2, 3, 4, 7})
      for (const std::int32_t microbatches : {1, 2, 3, 5, 8, 9, 14, 23})
        for (const std::int32_t stages : {1, 2, 3}) {
          if (kind.fixedStagesPerRank && stages != kind.fixedStagesPerRank) continue;
          if (kind.name == "DualPipeV" && microbatches < 2 * ranks) continue;
          SCOPED_TRACE(std::string(kind.name) + ", ranks " + std::to_string(ranks) + ", microbatches " +
                       std::to_string(microbatches) + ", stages " + std::to_string(stages));
          visit(kind, makeSchedule(kind, ranks, microbatches, stages), stages);
        }
}

std::vector<Action> flat(const std::vector<Action>& row) {
  std::vector<Action> actions;
  for (const auto& action : row) {
    if (action.kind == ActionKind::overlap) actions.insert(actions.end(), action.parts.begin(), action.parts.end());
    else actions.push_back(action);
  }
  return actions;
}

TEST(ScheduleProperties, everyStageDoesEveryMicrobatchOnce) {
  int schedules = 0;
  forSizes([&](const ScheduleKind& kind, const Schedule& schedule, std::int32_t stages) {
    ++schedules;
    ASSERT_EQ(schedule.stages, stages * static_cast<std::int32_t>(schedule.ranks.size()));
    std::map<std::tuple<ActionKind, int, int>, int> times;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      for (const auto& action : flat(schedule.ranks[rank])) {
        ++times[{action.kind, action.stage, action.microbatch}];
        const auto ranks = static_cast<std::int32_t>(schedule.ranks.size());
        const auto home = kind.vShaped && action.stage >= ranks ? 2 * ranks - 1 - action.stage : action.stage % ranks;
        ASSERT_EQ(home, static_cast<std::int32_t>(rank));
      }
    for (std::int32_t stage = 0; stage < schedule.stages; ++stage)
      for (std::int32_t microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
        const auto count = [&](ActionKind which) { return times[{which, stage, microbatch}]; };
        ASSERT_EQ(count(ActionKind::forward), 1);
        ASSERT_EQ(count(ActionKind::backward) + count(ActionKind::backwardInput), 1);
        ASSERT_EQ(count(ActionKind::backward) + count(ActionKind::backwardWeight), 1);
      }
  });
  EXPECT_GT(schedules, 450);
}

/// Of a simulation, not of the order: each forward after the one before it in the model, each backward after the one
/// behind it.
TEST(ScheduleProperties, noActionRunsBeforeWhatItNeeds) {
  forSizes([](const ScheduleKind&, const Schedule& schedule, std::int32_t) {
    const auto run = simulate(schedule);
    std::map<std::pair<int, int>, double> forwards, backwards;
    double total = 0;
    for (const auto& rank : run.ranks) {
      double free = 0;
      for (const auto& timed : rank.actions) {
        ASSERT_GE(timed.start, free);  // one at a time
        free = timed.end;
        total += timed.end - timed.start;
        const std::pair<int, int> which{timed.action.stage, timed.action.microbatch};
        if (timed.action.kind == ActionKind::forward) forwards[which] = timed.end;
        else if (timed.action.kind != ActionKind::backwardWeight) backwards[which] = timed.end;
      }
      ASSERT_LE(free, run.makespan);
    }
    for (const auto& rank : run.ranks)
      for (const auto& timed : rank.actions) {
        const auto stage = timed.action.stage, microbatch = timed.action.microbatch;
        if (timed.action.kind == ActionKind::forward && stage > 0)
          ASSERT_GE(timed.start, forwards.at({stage - 1, microbatch}));
        if (timed.action.kind == ActionKind::forward) continue;
        ASSERT_GE(timed.start, forwards.at({stage, microbatch}));
        if (timed.action.kind != ActionKind::backwardWeight && stage + 1 < schedule.stages)
          ASSERT_GE(timed.start, backwards.at({stage + 1, microbatch}));
      }
    ASSERT_EQ(total, 3.0 * schedule.stages * schedule.microbatches);  // F and B, or F, I and W, of each
    ASSERT_NEAR(run.bubble, 1 - total / (run.makespan * static_cast<double>(run.ranks.size())), 1e-12);
  });
}

// Holds P64: what is lowered runs without circles, sends and receives pair up and come in one order between two ranks,
// and hand-overs on one rank are not sent.
TEST(ScheduleProperties, loweredTransfersPairUp) {
  forSizes([](const ScheduleKind&, const Schedule& schedule, std::int32_t) {
    const auto lowered = lowerSchedule(schedule);
    const auto check = checkSchedule(lowered);
    ASSERT_TRUE(check.ok()) << check.problems[0].place << check.problems[0].message;
    std::map<std::pair<int, int>, std::vector<std::string>> sent, received;  // by ranks (from, to)
    for (std::size_t row = 0; row < lowered.ranks.size(); ++row)
      for (const auto& action : lowered.ranks[row]) {
        const auto rank = static_cast<std::int32_t>(row);
        const auto rankOf = [&](std::int32_t stage) { return lowered.rankOfStage.at(static_cast<std::size_t>(stage)); };
        const auto key = std::to_string(action.stage) + " " + std::to_string(action.microbatch);
        if (action.kind == ActionKind::sendForward) sent[{rank, rankOf(action.stage + 1)}].push_back("F" + key);
        if (action.kind == ActionKind::sendBackward) sent[{rank, rankOf(action.stage - 1)}].push_back("B" + key);
        if (action.kind == ActionKind::recvForward)
          received[{rankOf(action.stage - 1), rank}].push_back("F" + std::to_string(action.stage - 1) + " " +
                                                               std::to_string(action.microbatch));
        if (action.kind == ActionKind::recvBackward)
          received[{rankOf(action.stage + 1), rank}].push_back("B" + std::to_string(action.stage + 1) + " " +
                                                               std::to_string(action.microbatch));
      }
    ASSERT_EQ(sent, received);
    for (const auto& [ranks, messages] : sent) ASSERT_NE(ranks.first, ranks.second);
    std::erase_if(sent, [](const auto& entry) { return entry.second.empty(); });
    // The same work in the same order, and no time lost to where the receipts are.
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      auto computed = lowered.ranks[rank];
      std::erase_if(computed, [](const Action& action) { return transfers(action.kind); });
      ASSERT_EQ(computed, schedule.ranks[rank]);
    }
    ASSERT_EQ(simulate(lowered).makespan, simulate(schedule).makespan);
    ScheduleCosts slow;
    slow.transfer = 0.75;
    ASSERT_NEAR(simulate(lowered, slow).makespan, simulate(schedule, slow).makespan, 1e-9);
  });
}

TEST(ScheduleProperties, csvReadsBackAsItWas) {
  forSizes([](const ScheduleKind&, const Schedule& schedule, std::int32_t) {
    ASSERT_EQ(readScheduleCsv(writeScheduleCsv(schedule), "again").ranks, schedule.ranks);
  });
  const auto lowered = lowerSchedule(makeSchedule(*findScheduleKind("DualPipeV"), 4, 9));
  EXPECT_EQ(readScheduleCsv(writeScheduleCsv(lowered), "again").ranks, lowered.ranks);
}

/// The purposes of the published schedules.
TEST(ScheduleProperties, bubblesAndActivationsAreThoseOfTheirPapers) {
  const auto run = [](const char* name, std::int32_t ranks, std::int32_t microbatches, std::int32_t stages) {
    return simulate(makeSchedule(*findScheduleKind(name), ranks, microbatches, stages));
  };
  for (const std::int32_t ranks : {2, 4, 8})
    for (const std::int32_t microbatches : {8, 16, 32}) {
      const double p = ranks, m = microbatches;
      EXPECT_EQ(run("GPipe", ranks, microbatches, 1).makespan, 3 * (m + p - 1));
      const auto oneByOne = run("1F1B", ranks, microbatches, 1);
      EXPECT_EQ(oneByOne.makespan, 3 * (m + p - 1));
      for (std::int32_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(oneByOne.ranks[static_cast<std::size_t>(rank)].peakInFlight, std::min(ranks - rank, microbatches));
      for (const std::int32_t stages : {2, 3})
        EXPECT_EQ(run("Interleaved1F1B", ranks, microbatches, stages).makespan, 3 * stages * m + 3 * (p - 1));
      const auto zeroBubble = run("ZBVZeroBubble", ranks, microbatches, 2);
      if (microbatches < 2 * ranks - 1) continue;
      EXPECT_EQ(zeroBubble.makespan, 6 * m + p - 1);  // rank r begins r late, and waits at no other time
      for (const auto& rank : zeroBubble.ranks) EXPECT_EQ(rank.peakInFlight, 2 * ranks);
    }
}

}  // namespace
}  // namespace retrograd

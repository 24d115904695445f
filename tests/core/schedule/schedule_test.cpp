#include "core/schedule/schedule.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/schedule/schedule_check.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"
#include "core/schedule/schedule_report.h"
#include "core/schedule/schedule_simulation.h"

namespace retrograd {
namespace {

template <typename Body>
std::string errorOf(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(const std::string& csv) {
  return errorOf([&] { readScheduleCsv(csv, "s.csv"); });
}

Schedule read(const std::string& csv) { return readScheduleCsv(csv, "s.csv"); }

Schedule make(const char* name, std::int32_t ranks, std::int32_t microbatches, std::int32_t stages = 0) {
  return makeSchedule(*findScheduleKind(name), ranks, microbatches, stages);
}

TEST(ScheduleText, everyKindOfActionReadsBack) {
  for (const char* each :
       {"0F0", "12I3", "3W10", "7B2", "1SEND_F0", "2RECV_F5", "2SEND_B1", "0RECV_B9", "1WAIT_SEND_F4", "1WAIT_SEND_B4",
        "3UNSHARD", "3RESHARD", "2REDUCE_GRAD", "2WAIT_REDUCE_GRAD", "(0F7;7B3)OVERLAP_F_B"})
    EXPECT_EQ(text(parseAction(each)), each);
  const auto overlap = parseAction(" ( 1F2 ; 3B4 )OVERLAP_F_B ");
  ASSERT_EQ(overlap.parts.size(), 2u);
  EXPECT_EQ(overlap.parts[1].kind, ActionKind::backward);
  EXPECT_EQ(overlap.parts[1].stage, 3);
  EXPECT_EQ(overlap.parts[1].microbatch, 4);
}

// Holds P64: what cannot be read names its row and cell.
TEST(ScheduleText, badCellsAreNamed) {
  EXPECT_EQ(refusal("0F0,0B0\n1F0,1X0\n").substr(0, 49), "s.csv: row 2, cell 2: '1X0' is not an action: aft");
  EXPECT_NE(refusal("0F0,,F1").find("row 1, cell 3: 'F1' is not an action: it begins with the number of its stage"),
            std::string::npos);
  EXPECT_NE(refusal("0F").find("the number of the microbatch is missing"), std::string::npos);
  EXPECT_NE(refusal("0F1x").find("nothing is expected at 'x'"), std::string::npos);
  EXPECT_NE(refusal("0F-1").find("numbers from 0"), std::string::npos);
  EXPECT_NE(refusal("0UNSHARD3").find("takes no microbatch"), std::string::npos);
  EXPECT_NE(refusal("99999999999F0").find("numbers from 0 to 99999"), std::string::npos);
  EXPECT_NE(refusal("0F100000").find("numbers from 0 to 99999"), std::string::npos);
  EXPECT_NE(refusal("(0F1;1B0").find("')' is missing"), std::string::npos);
  EXPECT_NE(refusal("(0F1;1B0)OVERLAP").find("followed by OVERLAP_F_B"), std::string::npos);
  EXPECT_NE(refusal("(0SEND_F1;1B0)OVERLAP_F_B").find("only F, B, I and W overlap"), std::string::npos);
  EXPECT_NE(refusal("()OVERLAP_F_B").find("begins with the number"), std::string::npos);
  EXPECT_NE(refusal("0F0\n\n1F0").find("row 2: the row is empty"), std::string::npos);
  EXPECT_NE(refusal("").find("no row"), std::string::npos);
  EXPECT_NE(refusal(std::string("0F0,\0\xff", 6)).find("cell 2"), std::string::npos);
}

TEST(ScheduleText, idleCellsSpacesAndLineEndsDoNotMatter) {
  EXPECT_EQ(read("0F0, ,0B0\r\n,1F0 ,1B0\r\n\r\n").ranks, read("0F0,0B0\n1F0,1B0").ranks);
  const auto schedule = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1");
  EXPECT_EQ(schedule.stages, 2);
  EXPECT_EQ(schedule.microbatches, 2);
  EXPECT_EQ(schedule.rankOfStage, (std::vector<std::int32_t>{0, 1}));
}

TEST(ScheduleCheck, aCircleNamesEveryRankThatWaits) {
  const auto check = checkSchedule(read("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1"));
  ASSERT_EQ(check.waiting.size(), 2u);
  EXPECT_EQ(check.problems.at(0).place, "rank 0, action 2 (0B0)");
  EXPECT_EQ(check.problems.at(0).message, "deadlock: it needs 1B0 of rank 1");
  EXPECT_EQ(check.problems.at(1).place, "rank 1, action 2 (1F1)");
  EXPECT_EQ(check.problems.at(1).message, "it needs 0F1 of rank 0");
  EXPECT_EQ(errorOf([] { requireValid(read("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1")); }),
            "s.csv, rank 0, action 2 (0B0): deadlock: it needs 1B0 of rank 1; rank 1, action 2 (1F1): it needs 0F1 of "
            "rank 0");
}

TEST(ScheduleCheck, theRootComesBeforeThoseWhoWaitForIt) {
  const auto check = checkSchedule(read("0F0,0B0\n1F0,1B0\n2B0,2F0"));
  EXPECT_EQ(check.problems.at(0).place, "rank 2, action 1 (2B0)");
  EXPECT_EQ(check.problems.at(0).message, "deadlock: it needs 2F0, which comes later on the same rank");
  EXPECT_EQ(check.problems.size(), 3u);
  EXPECT_EQ(checkSchedule(read("0F0,0I0,0W0\n1F0,1W0,1I0")).problems.at(0).message,
            "deadlock: it needs 1I0, which comes later on the same rank");
}

TEST(ScheduleCheck, whatIsMissingOrTwiceIsNamed) {
  EXPECT_EQ(checkSchedule(read("0F0,0F1,0B0\n1F0,1B0,1F1,1B1")).problems.at(0).message,
            "stage 0 has no backward of microbatch 1");
  EXPECT_EQ(checkSchedule(read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1I1")).problems.at(0).message,
            "stage 1 has no weight gradient of microbatch 1");
  const auto twice = checkSchedule(read("0F0,0B0\n1F0,1B0,1W0")).problems.at(0);
  EXPECT_EQ(twice.place, "rank 1, action 3 (1W0)");
  EXPECT_EQ(twice.message, "it is done twice: first by action 2");
  EXPECT_EQ(checkSchedule(read("0F0,0B0\n0F1,0B1")).problems.at(0).message,
            "stage 0 is on rank 0: a stage is on one rank");
  const auto stray = checkSchedule(read("0F0,1F1,0B0\n1F0,1B0,1B1")).problems.at(0);
  EXPECT_EQ(stray.place, "rank 0, action 2 (1F1)");
  EXPECT_EQ(stray.message, "stage 1 is on rank 1: a stage is on one rank");
  EXPECT_EQ(checkSchedule(read("0F0,0B0\n2F0,2B0")).problems.at(0).message,
            "deadlock: it needs 1F0, which no rank does");
  EXPECT_EQ(checkSchedule(read("0F0,0B0,1UNSHARD")).problems.at(0).message, "no rank computes stage 1");
  EXPECT_FALSE(checkSchedule(scheduleOf("none", {{}, {}})).ok());
  Action empty;
  empty.kind = ActionKind::overlap;
  EXPECT_FALSE(checkSchedule(scheduleOf("empty overlap", {{empty}})).ok());
}

// Holds P64: transfers are checked too, and gradients are reduced when the last of them is there.
TEST(ScheduleCheck, transfersMustBeThere) {
  EXPECT_TRUE(checkSchedule(read("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0")).ok());
  EXPECT_EQ(checkSchedule(read("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0")).problems.at(0).message,
            "deadlock: it needs 1RECV_F0, which no rank does");
  EXPECT_EQ(checkSchedule(read("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0")).problems.at(0).message,
            "deadlock: it needs 0SEND_F0, which no rank does");
  EXPECT_EQ(checkSchedule(read("0F0,0F1,0B0,0REDUCE_GRAD,0B1")).problems.at(0).message,
            "deadlock: it needs 0B1, which comes later on the same rank");
  EXPECT_EQ(checkSchedule(read("0F0,0B0,0WAIT_REDUCE_GRAD,0REDUCE_GRAD")).problems.at(0).message,
            "deadlock: it needs 0REDUCE_GRAD, which comes later on the same rank");
}

TEST(ScheduleKinds, sizesThatCannotBeAreRefusedWithWhatCan) {
  EXPECT_EQ(errorOf([] { make("DualPipeV", 4, 7); }),
            "DualPipeV: needs two microbatches per rank or more: at least 8 for 4 ranks, not 7");
  EXPECT_EQ(errorOf([] { make("1F1B", 4, 8, 2); }), "1F1B: has 1 stage per rank, not 2");
  EXPECT_EQ(errorOf([] { make("ZBVZeroBubble", 4, 8, 3); }), "ZBVZeroBubble: has 2 stages per rank, not 3");
  EXPECT_EQ(errorOf([] { make("GPipe", 0, 8); }), "GPipe: ranks, microbatches and stages per rank are numbers from 1");
  EXPECT_NE(errorOf([] { make("LoopedBFS", 2'000'000'000, 2'000'000'000, 2'000'000'000); }).find("too many"),
            std::string::npos);
  EXPECT_EQ(findScheduleKind("nothing"), nullptr);
  EXPECT_EQ(findScheduleKind("ScheduleZBVZeroBubble"), findScheduleKind("zbv"));
  EXPECT_EQ(findScheduleKind("interleaved1f1b")->name, "Interleaved1F1B");
}

TEST(ScheduleSimulation, measuredTimesAndBytesCount) {
  const auto costs = readScheduleCosts(
      R"({"unit": "ms", "transfer": 0.5, "stages": [{"F": 1, "B": 2, "activation_bytes": 100}, {"F": 3, "I": 2, "W": 5, "activation_bytes": 7}]})",
      "c");
  EXPECT_EQ(costs.stages[0].backwardInput, 1);
  EXPECT_EQ(costs.stages[1].backward, 7);
  const auto run = simulate(make("1F1B", 2, 2), costs);
  // 0F0 0-1, 0F1 1-2; 1F0 1.5-4.5, 1B0 4.5-11.5, 1F1 11.5-14.5, 1B1 14.5-21.5; 0B0 12-14, 0B1 22-24.
  EXPECT_EQ(run.makespan, 24);
  EXPECT_EQ(run.ranks[0].busy, 6);
  EXPECT_EQ(run.ranks[1].busy, 20);
  EXPECT_NEAR(run.bubble, 1 - 26.0 / 48, 1e-12);
  EXPECT_EQ(run.ranks[0].peakBytes, 200);
  EXPECT_EQ(run.ranks[1].peakBytes, 7);
  EXPECT_EQ(run.ranks[1].actions[1].start, 4.5);
}

TEST(ScheduleSimulation, edgesTravelAsLongAsTheyAreSaidTo) {
  const auto costs = readScheduleCosts(
      R"({"transfer": 9, "edges": [{"source": 0, "destination": 1, "F": 0.5, "B": 2}], "stages": [{"F": 1, "B": 2}]})",
      "c");
  const auto schedule = make("GPipe", 2, 1);
  // 0F0 0-1; 1F0 1.5-2.5, 1B0 2.5-4.5; 0B0 6.5-8.5.
  EXPECT_EQ(simulate(schedule, costs).makespan, 8.5);
  EXPECT_EQ(simulate(lowerSchedule(schedule), costs).makespan, 8.5);
  auto others = costs;
  others.edges.clear();  // what is not named takes `transfer`
  EXPECT_EQ(simulate(schedule, others).makespan, 24);
  for (const StageEdge none : {StageEdge{1, 2}, StageEdge{1, 0}, StageEdge{-1, 1}}) {
    others.edges = {{none, 1, 1}};
    EXPECT_NE(errorOf([&] { simulate(schedule, others); }).find("edges go to a later one of the 2 stages"),
              std::string::npos);
  }
}

TEST(ScheduleSimulation, aSkipHasAnEdgeOfItsOwn) {
  auto schedule = make("GPipe", 3, 1);
  schedule.edges = {{0, 1}, {1, 2}, {0, 2}};
  ScheduleCosts costs;
  costs.edges = {{{0, 2}, 10, 1}};
  // 0F0 0-1, 1F0 1-2; what 2 waits for comes at 11: 2F0 11-12, 2B0 12-14, 1B0 14-16, 0B0 16-18.
  EXPECT_EQ(simulate(schedule, costs).makespan, 18);
  EXPECT_EQ(simulate(lowerSchedule(schedule), costs).makespan, 18);
}

TEST(ScheduleSimulation, overlapHidesTheShorterPart) {
  const auto schedule = make("DualPipeV", 2, 4);
  ScheduleCosts hides;
  hides.overlapHides = true;
  EXPECT_EQ(simulate(schedule).makespan, 26);
  EXPECT_EQ(simulate(schedule, hides).makespan, 22);
}

TEST(ScheduleSimulation, badCostsAreRefused) {
  const auto refused = [](const char* json) { return errorOf([&] { readScheduleCosts(json, "c"); }); };
  EXPECT_EQ(refused("{"), "c: not JSON");
  EXPECT_EQ(refused(R"({"stages": []})"), "c: 'stages' is not a list of at least one stage");
  EXPECT_EQ(refused(R"({"stages": [{"F": 1}, {"F": -1}]})"), "c: stage 1: 'F' is not a number from 0");
  EXPECT_EQ(refused(R"({"stages": [{}], "edges": [{"source": 0}]})"),
            "c: 'destination' of an edge is not the number of a stage");
  EXPECT_EQ(refused(R"({"stages": [{}], "edges": {}})"), "c: 'edges' is not a list");
  EXPECT_NE(refused(R"({"stages": [{"G": 1}]})").find("stage 0: a stage has no 'G'"), std::string::npos);
  EXPECT_EQ(refused(R"({"stages": [{"activation_bytes": 1.5}]})"),
            "c: stage 0: 'activation_bytes' is not a number of bytes");
  ScheduleCosts three;
  three.stages.resize(3);
  EXPECT_EQ(errorOf([&] { simulate(make("GPipe", 2, 2), three); }),
            "GPipe: costs of 3 stages for a schedule of 2: give one for each, or one for all");
}

// Holds P58: a value goes from the stage that makes it to every stage that reads it, also past others, and so do
// gradients back.
TEST(ScheduleLowering, skipEdgesAreSentFromTheirSource) {
  auto schedule = make("GPipe", 3, 1);
  schedule.edges = {{0, 1}, {0, 2}, {1, 2}};
  const auto lowered = lowerSchedule(schedule);
  EXPECT_EQ(writeScheduleCsv(lowered),
            "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0\n2RECV_F0,2F0,2B0,2SEND_B0\n");
  schedule.edges = {{0, 2}};  // nothing reads what stage 1 makes
  EXPECT_EQ(writeScheduleCsv(lowerSchedule(schedule)),
            "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0\n2RECV_F0,2F0,2B0,2SEND_B0\n");
  schedule.edges = {{2, 1}};
  EXPECT_NE(errorOf([&] { checkSchedule(schedule); }).find("an edge leads from a stage to a later one"),
            std::string::npos);
}

// Holds P64: stages of one rank hand over without transfers.
TEST(ScheduleLowering, aVSendsNothingAtItsTip) {
  const auto lowered = lowerSchedule(make("ZBVZeroBubble", 2, 2));
  for (const auto& action : lowered.ranks[1]) {
    EXPECT_FALSE(action.stage == 1 && action.kind == ActionKind::sendForward);
    EXPECT_FALSE(action.stage == 2 &&
                 (action.kind == ActionKind::recvForward || action.kind == ActionKind::sendBackward));
  }
  EXPECT_EQ(text(lowered.ranks[1][0]), "1RECV_F0");
  EXPECT_EQ(text(lowered.ranks[1][1]), "1F0");
  EXPECT_NE(errorOf([&] { lowerSchedule(lowered); }).find("has its transfers already"), std::string::npos);
}

TEST(ScheduleLowering, mergesAndReductions) {
  const auto merged = mergeBackward(read("0F0,0F1,0I0,0W0,0I1,0F2,0W1,0I2,0W2"));
  EXPECT_EQ(writeScheduleCsv(merged), "0F0,0F1,0B0,0I1,0F2,0W1,0B2\n");
  LoweringOptions options;
  options.reduceGrads = {1};
  options.mergeBackward = true;
  EXPECT_EQ(writeScheduleCsv(lowerSchedule(read("0F0,0I0,0W0,0F1,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1"), options)),
            "0F0,0SEND_F0,0RECV_B0,0B0,0F1,0SEND_F1,0RECV_B1,0B1\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n");
}

TEST(ScheduleSvg, everyActionIsColouredLabelledAndExplained) {
  const auto schedule = make("ZBVZeroBubble", 2, 2);
  const auto svg = scheduleSvg(schedule, simulate(schedule));
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (auto at = svg.find(what); at != svg.npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(" of microbatch "), 4u * 2 * 3);  // stages x microbatches x (F, I, W)
  EXPECT_EQ(count(">F1</text>"), 4u);
  EXPECT_EQ(count(">I0</text>"), 4u);
  EXPECT_EQ(count(">s3</text>"), 6u);
  EXPECT_EQ(count("<title>rank 1 waits from 0 to 1</title>"), 1u);
  EXPECT_EQ(count("<svg"), 1u);
  EXPECT_EQ(count(">waiting (bubble)</text>"), 1u);
  auto named = schedule;
  named.name = "<a & b>";
  EXPECT_NE(scheduleSvg(named, simulate(named)).find("&lt;a &amp; b&gt;"), std::string::npos);
}

}  // namespace
}  // namespace retrograd

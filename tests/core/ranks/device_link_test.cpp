#include "core/ranks/transport.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ranks/traffic.h"
#include "core/schedule/schedule_kinds.h"
#include "core/schedule/schedule_lowering.h"

namespace retrograd {
namespace {

constexpr Device cpu{}, gpu{Device::Type::cuda, 0}, secondGpu{Device::Type::cuda, 1};

TEST(DeviceLink, ranksOnGpusOfTheirOwnAreLinkedAndSoAreRanksOnTheCpu) {
  EXPECT_EQ(linkRefusal({{gpu, "a", {}}, {secondGpu, "b", {}}, {gpu, "c", {}}}), "");  // the third on another machine
  EXPECT_EQ(linkRefusal({{cpu, {}, {}}, {cpu, {}, {}}}), "");
}

TEST(DeviceLink, aRefusalNamesTheRankAndTheReason) {
  EXPECT_EQ(linkRefusal({{gpu, "a", {}}, {secondGpu, "b", {}}, {gpu, "a", {}}}),
            "ranks 0 and 2 share a GPU, and NCCL needs one for each");
  EXPECT_EQ(linkRefusal({{gpu, "a", {}}, {gpu, {}, "NCCL is not part of this build"}}),
            "rank 1: NCCL is not part of this build");
  EXPECT_EQ(linkRefusal({{gpu, "a", {}}, {cpu, {}, {}}}), "rank 1 computes on the CPU, others on a GPU");
  EXPECT_EQ(linkRefusal({{cpu, {}, {}}, {gpu, "a", {}}}), "rank 0 computes on the CPU, others on a GPU");
  EXPECT_EQ(linkRefusal({{gpu, "a", {}}, {std::nullopt, {}, {}}}), "the stages of rank 1 run on several devices");
}

TEST(DeviceLink, anOfferArrivesAsItWasMade) {
  for (const auto& offer : {LinkOffer{gpu, "0123", {}}, LinkOffer{cpu, {}, {}}, LinkOffer{std::nullopt, {}, {}},
                            LinkOffer{secondGpu, {}, "two\nlines"}}) {
    const auto arrived = linkOffer(text(offer));
    EXPECT_EQ(arrived.device, offer.device);
    EXPECT_EQ(arrived.unit, offer.unit);
    EXPECT_EQ(arrived.trouble, offer.trouble);
  }
  EXPECT_THROW(linkOffer("cuda:0\nonly"), Error);
}

// Of 1F1B over three ranks, what rank 0 sends to rank 1 and back, in the order of the sender.
TEST(Traffic, listsWhatGoesBetweenRanksAsItIsSent) {
  auto schedule = lowerSchedule(makeSchedule(*findScheduleKind("1F1B"), 3, 2));
  EXPECT_EQ(rankPairs(schedule), (RankPairs{{0, 1}, {1, 0}, {1, 2}, {2, 1}}));
  const auto traffic = trafficOf(schedule);
  EXPECT_EQ(traffic.at({0, 1}), (std::vector<Border>{{true, 0, 1, 0}, {true, 0, 1, 1}}));
  EXPECT_EQ(traffic.at({2, 1}), (std::vector<Border>{{false, 2, 1, 0}, {false, 2, 1, 1}}));

  schedule = makeSchedule(*findScheduleKind("1F1B"), 3, 1);
  schedule.edges = schedule.allEdges();
  schedule.edges.push_back({0, 2});
  EXPECT_EQ(rankPairs(lowerSchedule(schedule)), (RankPairs{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}));
}

// Two stages of one rank hand over without a message.
TEST(Traffic, knowsNothingOfWhatStaysOnARank) {
  EXPECT_TRUE(trafficOf(lowerSchedule(makeSchedule(*findScheduleKind("InterleavedZeroBubble"), 1, 2))).empty());
}

}  // namespace
}  // namespace retrograd

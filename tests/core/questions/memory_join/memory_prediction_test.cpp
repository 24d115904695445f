#include "core/questions/memory_join/memory_prediction.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

TracedAllocation traced(std::uint64_t bytes, std::size_t position, std::size_t lastRead, bool backward) {
  TracedAllocation allocation;
  allocation.bytes = bytes;
  allocation.position = position;
  allocation.lastRead = lastRead;
  allocation.backward = backward;
  allocation.op = "aten.mul.Tensor";
  allocation.use = backward ? TracedAllocation::Use::temporary : TracedAllocation::Use::saved;
  return allocation;
}

JoinedAllocation recorded(std::uint64_t size, std::int64_t from, std::int64_t to, std::int32_t which,
                          std::int32_t step = 0) {
  JoinedAllocation allocation;
  allocation.what.size = allocation.what.requested = size;
  allocation.what.from = from;
  allocation.what.to = to;
  allocation.traced = which;
  allocation.step = step;
  allocation.level = which < 0 ? JoinLevel::unknown : JoinLevel::aligned;
  return allocation;
}

std::int64_t sumOf(const std::vector<PredictionGap>& gaps) {
  std::int64_t sum = 0;
  for (const auto& gap : gaps) sum += gap.bytes;
  return sum;
}

std::int64_t bytesFor(const MemoryPrediction& prediction, const std::string& reason) {
  for (const auto& gap : prediction.gaps)
    if (gap.reason == reason) return gap.bytes;
  return 0;
}

/// A saved tensor, one of the backward, a workspace that no trace knows, and memory from before the step.
TEST(MemoryPrediction, ReasonsSumToTheDifferenceAtThePeak) {
  MemoryJoin join;
  join.trace.forwardCount = 1;
  join.trace.allocations = {traced(1000, 0, 1, false), traced(300, 1, 1, true)};
  join.allocations = {recorded(4096, -1, -1, -1, -1), recorded(512, -1, 4, -1, -1), recorded(1024, 0, 9, 0),
                      recorded(2048, 5, -1, -1), recorded(512, 6, 8, 1)};
  join.allocations[3].what.category = MemoryCategory::workspace;
  join.steps = 1;
  const auto prediction = memoryPrediction(join, 6);
  ASSERT_EQ(prediction.steps.size(), 1u);
  EXPECT_EQ(prediction.steps[0].peakBytes, 4096u + 512 + 1300);
  EXPECT_EQ(prediction.recordedBytes, 4096u + 1024 + 2048 + 512);
  EXPECT_EQ(prediction.predictedBytes, 4096u + 512 + 1300);
  EXPECT_EQ(sumOf(prediction.gaps),
            static_cast<std::int64_t>(prediction.recordedBytes) - static_cast<std::int64_t>(prediction.predictedBytes));
  EXPECT_EQ(prediction.gaps.front().reason, "workspace");
  EXPECT_EQ(bytesFor(prediction, "workspace"), 2048);
  EXPECT_EQ(bytesFor(prediction, "rounding by the allocator"), 24 + 212);
  EXPECT_EQ(bytesFor(prediction, "let go since the step began: unknown"), -512);
}

/// What is held after its last reader was not predicted, and what is predicted and was not made is missing.
TEST(MemoryPrediction, WhatIsHeldTooLongAndWhatIsMissingAreReasons) {
  MemoryJoin join;
  join.trace.allocations = {traced(1024, 0, 1, false), traced(512, 2, 3, false), traced(2048, 3, 9, false)};
  join.allocations = {recorded(1024, 0, -1, 0), recorded(512, 3, -1, 1), recorded(512, 7, -1, -1)};
  join.steps = 1;
  auto& unread = join.trace.allocations[0];
  unread.lastRead = 1;
  const auto prediction = memoryPrediction(join, 7);
  EXPECT_EQ(bytesFor(prediction, "held after the last reader"), 1024);
  EXPECT_EQ(sumOf(prediction.gaps),
            static_cast<std::int64_t>(prediction.recordedBytes) - static_cast<std::int64_t>(prediction.predictedBytes));
  // At an event of no step nothing is said.
  EXPECT_TRUE(memoryPrediction(join, 70).gaps.empty());
}

TEST(MemoryPrediction, APositionIsAnEventOfItsStep) {
  MemoryJoin join;
  join.trace.allocations = {traced(512, 0, 1, false), traced(512, 3, 3, true)};
  join.allocations = {recorded(512, 2, -1, 0, 0), recorded(512, 5, -1, 1, 0), recorded(512, 6, -1, -1, 0),
                      recorded(512, 9, -1, 0, 1), recorded(512, 12, -1, 1, 1)};
  join.steps = 2;
  EXPECT_EQ(stepWith(join, 6), 0);
  EXPECT_EQ(stepWith(join, 9), 1);
  EXPECT_EQ(stepWith(join, HeldAllocation::outside), 1);
  EXPECT_EQ(eventAfter(join, 0, 0), 1);   // before the first op
  EXPECT_EQ(eventAfter(join, 0, 1), 4);   // before what the op at 3 makes
  EXPECT_EQ(eventAfter(join, 1, 3), 11);  // of the second step
  EXPECT_EQ(eventAfter(join, 0, 4), 6);   // at the end: all that the step made
}

}  // namespace
}  // namespace retrograd

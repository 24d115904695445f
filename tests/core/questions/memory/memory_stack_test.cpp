#include "core/questions/memory/memory_stack.h"

#include <gtest/gtest.h>

#include <memory>

#include <numeric>

#include "tests/core/formats/memory/small_snapshot.h"

namespace retrograd {
namespace {

using test::SmallSnapshot;

std::uint64_t sumOf(const std::vector<std::uint64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

/// After each event of the real histories the bands sum to what the replay holds, whatever they are bands of.
TEST(MemoryStack, BandsSumToTheAllocatorsBytesAtEachEvent) {
  for (const auto* history : {"plain", "leak"}) {
    const auto snapshot = openMemorySnapshot(test::history(history));
    const MemoryPlaces places(*snapshot);
    const auto whole = wholeHistory(*snapshot, 0, places);
    for (const auto by : {MemoryGrouping::category, MemoryGrouping::line, MemoryGrouping::module}) {
      const auto grouped = groupedAllocations(whole, places, by);
      const MemoryStack stack(std::make_shared<const HeldMemory>(whole), grouped, 5);
      EXPECT_LE(stack.bands().size(), 5u);
      const auto columns = stack.columns(0, whole.events, whole.events);
      ASSERT_EQ(columns.size(), whole.events);
      for (std::size_t event = 0; event < whole.events; event += 61) {
        EXPECT_EQ(columns[event].event, static_cast<std::int64_t>(event));
        EXPECT_EQ(columns[event].bytes, heldMemory(*snapshot, 0, places, {event}).bytes) << history << event;
        EXPECT_EQ(sumOf(columns[event].parts), columns[event].bytes);
        std::uint64_t inGroups = 0;
        for (const auto& group : memoryGroupsAt(whole, grouped, static_cast<std::int64_t>(event)))
          inGroups += group.bytes;
        EXPECT_EQ(inGroups, columns[event].bytes);
      }
    }
  }
}

/// A peak of one event among many is seen, at any width.
TEST(MemoryStack, AColumnIsTheEventAfterWhichMostIsHeld) {
  const auto snapshot = openMemorySnapshot(test::history("plain"));
  const MemoryPlaces places(*snapshot);
  const auto whole = wholeHistory(*snapshot, 0, places);
  const MemoryStack stack(std::make_shared<const HeldMemory>(whole),
                          groupedAllocations(whole, places, MemoryGrouping::category), 9);
  for (const std::size_t width : {1, 7, 300}) {
    const auto columns = stack.columns(0, whole.events, width);
    ASSERT_EQ(columns.size(), width);
    const auto highest = std::ranges::max_element(columns, {}, &MemoryStack::Column::bytes);
    EXPECT_EQ(highest->bytes, whole.peakBytes);
    EXPECT_EQ(highest->event, whole.peakEvent);
  }
  EXPECT_TRUE(stack.columns(5, 5, 10).empty());
  EXPECT_EQ(stack.columns(10, 14, 100).size(), 4u);
}

TEST(MemoryStack, TheSmallestGroupsShareTheLastBand) {
  SmallSnapshot history;
  for (int i = 0; i < 4; ++i) history.event({"alloc", (16 + i) << 20, (i + 1) * 1024, {{"f", "/job/a.py", i + 1}}});
  const auto snapshot = test::read(history.segment(16 << 20, 1 << 20, {}).pickle());
  const MemoryPlaces places(snapshot);
  const auto whole = wholeHistory(snapshot, 0, places);
  const MemoryStack stack(std::make_shared<const HeldMemory>(whole),
                          groupedAllocations(whole, places, MemoryGrouping::line), 3);
  ASSERT_EQ(stack.bands().size(), 3u);
  EXPECT_EQ(stack.bands()[0].name, "a.py:4 in f");
  EXPECT_EQ(stack.bands()[1].name, "a.py:3 in f");
  EXPECT_EQ(stack.bands()[2].name, "");
  EXPECT_EQ(stack.bands()[2].groups, 2u);
  EXPECT_EQ(stack.columns(3, 4, 1).at(0).parts[2], 3u * 1024);
}

}  // namespace
}  // namespace retrograd

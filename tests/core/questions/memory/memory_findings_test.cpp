#include <gtest/gtest.h>

#include <algorithm>

#include "core/questions/memory/memory_finding.h"
#include "tests/core/formats/memory/small_snapshot.h"

namespace retrograd {
namespace {

using test::SmallSnapshot;
using Kind = MemoryFinding::Kind;

std::vector<MemoryFinding> findingsOf(const MemorySnapshot& snapshot, std::optional<std::size_t> event = {}) {
  const MemoryPlaces places(snapshot);
  if (!event) event = static_cast<std::size_t>(heldMemory(snapshot, 0, places).peakEvent);
  return memoryFindings(snapshot, 0, places, heldMemory(snapshot, 0, places, {event}));
}

const MemoryFinding* find(const std::vector<MemoryFinding>& found, Kind kind) {
  const auto at = std::ranges::find(found, kind, &MemoryFinding::kind);
  return at == found.end() ? nullptr : &*at;
}

TEST(MemoryFindings, TheLineThatKeepsAGraphIsALeak) {
  const auto found = findingsOf(*openMemorySnapshot(test::history("leak")));
  const auto* leak = find(found, Kind::leak);
  ASSERT_NE(leak, nullptr);
  EXPECT_EQ(leak->line, "train.py:34 in main");
  EXPECT_EQ(leak->bytes,
            3u * (2'097'152 + 524'288));  // each step what `up` gives, and the embedding that its graph keeps
  const auto* growth = find(found, Kind::growth);
  ASSERT_NE(growth, nullptr);
  EXPECT_EQ(growth->bytes, 2'621'952u);  // a loss of 4 bytes, too
}

TEST(MemoryFindings, AStepThatKeepsNothingDoesNotLeak) {
  for (const auto* name : {"plain", "checkpoint", "aot"}) {
    const auto found = findingsOf(*openMemorySnapshot(test::history(name)));
    EXPECT_EQ(find(found, Kind::leak), nullptr) << name;
    EXPECT_EQ(find(found, Kind::growth), nullptr) << name;
    const auto* workspace = find(found, Kind::workspace);
    ASSERT_NE(workspace, nullptr) << name;
    EXPECT_EQ(workspace->bytes, 2u * 33'554'432) << name;
  }
}

TEST(MemoryFindings, RoundingAboveATenthIsSaid) {
  constexpr std::int64_t mib = 1 << 20, at = std::int64_t{1} << 30;
  const auto rounded = [&](std::int64_t size) {
    return test::read(SmallSnapshot()
                          .event({"segment_alloc", at, 2 * mib})
                          .event({"alloc", at, size})
                          .segment(at, 2 * mib, {{2 * mib, size}})
                          .pickle());
  };
  const auto found = findingsOf(rounded(mib + 700'000));  // the block is not cut, so that it has 2 MiB
  ASSERT_NE(find(found, Kind::rounding), nullptr);
  EXPECT_EQ(find(found, Kind::rounding)->bytes, mib - 700'000u);
  EXPECT_EQ(find(findingsOf(rounded(2 * mib - 1000)), Kind::rounding), nullptr);
}

/// A request of 6 MiB fails next to 4 MiB and 3 MiB that are free.
TEST(MemoryFindings, WhyARequestDidNotFitNamesTheNeighbours) {
  constexpr std::int64_t mib = 1 << 20, at = std::int64_t{1} << 30;
  const std::vector<SmallSnapshot::Frame> keep{{"keep", "/job/net.py", 5}}, ask{{"ask", "/job/net.py", 9}};
  const auto read =
      test::read(SmallSnapshot()
                     .event({"segment_alloc", at, 20 * mib})
                     .event({"alloc", at, 4 * mib})
                     .event({"alloc", at + 4 * mib, 13 * mib, keep})
                     .event({"free_completed", at, 4 * mib})
                     .event({"oom", mib, 6 * mib, ask})
                     .segment(at, 20 * mib, {{4 * mib, 0, false}, {13 * mib, 13 * mib}, {3 * mib, 0, false}})
                     .pickle());
  const auto found = findingsOf(read, 4);
  const auto* why = find(found, Kind::fragmentation);
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->bytes, 6u * mib);
  EXPECT_EQ(why->line, "net.py:9 in ask");
  EXPECT_EQ(why->text,
            "6.0 MiB asked for at net.py:9 in ask did not fit: 13 MiB are held, 7.0 MiB are reserved and free in 2 "
            "pieces, the device had 1.0 MiB free; the largest free piece has 4.0 MiB, between the segment's border and "
            "13 MiB of net.py:5 in keep");
}

/// What torch.cuda.memory_allocated said before each forward and after it.
TEST(MemoryFindings, StepsAreThoseThatTheJobMeasured) {
  const auto snapshot = openMemorySnapshot(test::history("plain"));
  const auto steps = heldMemory(*snapshot, 0, MemoryPlaces(*snapshot)).steps;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].startBytes, 76'093'440u);
  EXPECT_EQ(steps[1].forwardBytes, 103'471'616u);
  EXPECT_EQ(steps[1].peakBytes, 105'560'576u);
  EXPECT_EQ(steps[0].peakBytes, 100'138'496u);
}

}  // namespace
}  // namespace retrograd

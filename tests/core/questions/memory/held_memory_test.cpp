#include "core/questions/memory/held_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/questions/memory/memory_groups.h"
#include "tests/core/formats/memory/small_snapshot.h"

namespace retrograd {
namespace {

using test::SmallSnapshot;
using Bytes = std::map<std::string, std::uint64_t>;

HeldMemory heldIn(const MemorySnapshot& snapshot, const MemoryMoment& moment = {}) {
  return heldMemory(snapshot, 0, MemoryPlaces(snapshot), moment);
}

Bytes bytesBy(const MemorySnapshot& snapshot, const HeldMemory& held, MemoryGrouping by) {
  Bytes bytes;
  for (const auto& group : memoryGroups(held, MemoryPlaces(snapshot), by)) bytes[group.name] += group.bytes;
  return bytes;
}

std::uint64_t sumOf(const Bytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0},
                         [](auto sum, const auto& each) { return sum + each.second; });
}

/// What torch.cuda.max_memory_allocated() said of each run, and what its events asked for at most.
TEST(HeldMemory, PeaksOfRealHistoriesAreTheAllocatorsOwn) {
  const std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> peaks{{"plain", {105'560'576, 105'559'560}},
                                                                             {"checkpoint", {90'430'976, 90'429'464}},
                                                                             {"leak", {110'804'480, 110'802'448}},
                                                                             {"aot", {105'560'576, 105'559'560}}};
  for (const auto& [name, peak] : peaks) {
    const auto snapshot = openMemorySnapshot(test::history(name));
    const auto held = heldIn(*snapshot);
    EXPECT_EQ(held.peakBytes, peak.first) << name;
    EXPECT_EQ(held.requestedPeakBytes, peak.second) << name;
    for (const auto by : {MemoryGrouping::line, MemoryGrouping::module, MemoryGrouping::category})
      EXPECT_EQ(sumOf(bytesBy(*snapshot, held, by)), peak.first) << name;
  }
}

/// After the last event the replay holds what the snapshot's own blocks say, block by block.
TEST(HeldMemory, TheLastEventOfRealHistoriesLeavesTheBlocksOfTheSnapshot) {
  for (const auto* name : {"plain", "checkpoint", "leak", "aot"}) {
    const auto snapshot = openMemorySnapshot(test::history(name));
    const auto held = heldIn(*snapshot, {snapshot->events.at(0).size() - 1});
    EXPECT_EQ(held.bytes, held.endBytes) << name;
    std::map<std::uint64_t, std::uint64_t> replayed, said;
    for (const auto& allocation : held.allocations) replayed[allocation.address] = allocation.size;
    for (const auto& block : snapshot->blocks)
      if (block.state != MemoryBlock::State::inactive) said[block.address] = block.size;
    EXPECT_EQ(replayed, said) << name;
  }
}

TEST(HeldMemory, AtEachEventTheAllocationsSumToTheBytes) {
  const auto snapshot = openMemorySnapshot(test::history("plain"));
  for (std::size_t event = 0; event < snapshot->events.at(0).size(); event += 97) {
    const auto held = heldIn(*snapshot, {event});
    std::uint64_t sum = 0;
    for (const auto& allocation : held.allocations) sum += allocation.size;
    EXPECT_EQ(sum, held.bytes) << event;
    EXPECT_EQ(held.peakBytes, 105'560'576u);
  }
}

TEST(HeldMemory, TheTwoWorkspacesOfCublasAreACategory) {
  for (const auto* name : {"plain", "checkpoint", "leak", "aot"}) {
    const auto snapshot = openMemorySnapshot(test::history(name));
    EXPECT_EQ(bytesBy(*snapshot, heldIn(*snapshot), MemoryGrouping::category)["workspace"], 2u * 33'554'432) << name;
  }
}

TEST(HeldMemory, CategoriesFollowFromWhereMemoryIsMadeAndLetGo) {
  const auto snapshot = openMemorySnapshot(test::history("plain"));
  const auto peak = bytesBy(*snapshot, heldIn(*snapshot), MemoryGrouping::category);
  EXPECT_EQ(peak.at("parameter"), 2'642'432u);
  EXPECT_EQ(peak.at("optimizer"), 2u * 2'642'432);  // AdamW has two states for each parameter
  const auto end = heldIn(*snapshot, {snapshot->events.at(0).size() - 1});
  EXPECT_EQ(bytesBy(*snapshot, end, MemoryGrouping::category).at("gradient"), 2'642'432u);
}

/// A tensor of the size of a workspace is not one where the same line makes it again.
TEST(HeldMemory, ASizeAloneDoesNotMakeAWorkspace) {
  constexpr std::int64_t size = 33'554'432;
  const std::vector<SmallSnapshot::Frame> line{{"forward", "/job/net.py", 3}};
  SmallSnapshot snapshot;
  for (std::int64_t i = 1; i < 4; ++i)
    snapshot.event({"segment_alloc", i << 30, size}).event({"alloc", i << 30, size, line});
  const auto read = test::read(snapshot.pickle());
  EXPECT_EQ(bytesBy(read, heldIn(read), MemoryGrouping::category).count("workspace"), 0u);
}

/// A block whose rest is too small for a block of its own counts whole: 1 MiB and less of a large one.
TEST(HeldMemory, ABlockThatIsNotCutCountsWhole) {
  constexpr std::int64_t mib = 1 << 20, at = std::int64_t{1} << 30;
  const auto read = test::read(SmallSnapshot()
                                   .event({"segment_alloc", at, 12 * mib})
                                   .event({"alloc", at, 11 * mib + 1})
                                   .segment(at, 12 * mib, {{12 * mib, 11 * mib + 1}})
                                   .pickle());
  EXPECT_EQ(heldIn(read).peakBytes, 12u * mib);
  EXPECT_EQ(heldIn(read).requestedPeakBytes, 11u * mib + 1);
}

/// What the history does not begin with is known from its end.
TEST(HeldMemory, AHistoryWithoutItsBeginningCountsWhatWasHeldBefore) {
  constexpr std::int64_t mib = 1 << 20, old = std::int64_t{1} << 30, fresh = std::int64_t{2} << 30;
  const auto read = test::read(SmallSnapshot()
                                   .event({"alloc", fresh, mib})
                                   .event({"free_requested", old, 4 * mib})
                                   .event({"free_completed", old, 4 * mib})
                                   .segment(fresh, 2 * mib, {{mib, mib}, {mib, mib}})
                                   .pickle());
  const auto held = heldIn(read);
  EXPECT_EQ(held.peakBytes, 6u * mib);  // the old block, the new one, and one that is older than the history
  EXPECT_EQ(sumOf(bytesBy(read, held, MemoryGrouping::line)), 6u * mib);
}

/// The bytes after each event of a whole history.
std::vector<std::uint64_t> bytesAfterEach(const HeldMemory& whole) {
  std::vector<std::int64_t> changes(whole.events);
  for (const auto& allocation : whole.allocations) {
    changes[static_cast<std::size_t>(allocation.from)] += static_cast<std::int64_t>(allocation.size);
    if (allocation.to >= 0)
      changes[static_cast<std::size_t>(allocation.to)] -= static_cast<std::int64_t>(allocation.size);
  }
  std::partial_sum(changes.begin(), changes.end(), changes.begin());
  return {changes.begin(), changes.end()};
}

/// The recorder keeps the last events only: the peak of these is right to the byte wherever the history was cut.
TEST(HeldMemory, AHistoryThatWasCutHasTheAllocatorsBytes) {
  for (const auto* name : {"plain", "checkpoint", "leak", "aot"}) {
    const auto whole = openMemorySnapshot(test::history(name));
    const auto bytes = bytesAfterEach(wholeHistory(*whole, 0, MemoryPlaces(*whole)));
    for (std::size_t cut = 1; cut < bytes.size(); cut += 53) {
      auto snapshot = readMemorySnapshot(*openByteStream(test::history(name)));
      EventLog last;
      EventLog::Cursor cursor(whole->events[0]);
      MemoryEvent event;
      for (std::size_t i = 0; cursor.next(event); ++i)
        if (i >= cut) last.add(event);
      snapshot.events[0] = std::move(last);
      const auto held = heldIn(snapshot);
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(cut);
      EXPECT_EQ(held.peakBytes, *std::max_element(std::prev(first), bytes.end())) << name << " " << cut;
      EXPECT_EQ(sumOf(bytesBy(snapshot, held, MemoryGrouping::category)), held.peakBytes) << name << " " << cut;
      EXPECT_EQ(held.endBytes, bytes.back());
    }
  }
}

TEST(HeldMemory, MemoryIsHeldUntilItsFreeIsCompleted) {
  const auto read = test::read(SmallSnapshot()
                                   .event({"segment_alloc", 1 << 30, 2 << 20})
                                   .event({"alloc", 1 << 30, 512})
                                   .event({"free_requested", 1 << 30, 512})
                                   .event({"alloc", (1 << 30) + 512, 512})
                                   .event({"free_completed", 1 << 30, 512})
                                   .segment((1 << 30) + 512, 512, {{512, 512}})
                                   .pickle());
  EXPECT_EQ(heldIn(read).peakBytes, 1024u);
}

}  // namespace
}  // namespace retrograd

#include "core/questions/memory/allocator_model.h"

#include <gtest/gtest.h>

#include "core/questions/memory/held_memory.h"
#include "tests/core/formats/memory/small_snapshot.h"

namespace retrograd {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// Not the peak alone: each request of each history gets the very block that it got on the GPU.
TEST(AllocatorModel, ItsPeaksAreThoseOfRealHistories) {
  for (const auto* name : {"plain", "checkpoint", "leak", "aot"}) {
    const auto snapshot = openMemorySnapshot(test::history(name));
    const auto modelled = modelledMemory(*snapshot, 0, allocatorRequests(*snapshot, 0));
    const auto held = heldMemory(*snapshot, 0, MemoryPlaces(*snapshot));
    EXPECT_EQ(modelled.peakBytes, held.peakBytes) << name;
    EXPECT_EQ(modelled.endBytes, held.endBytes) << name;
    EXPECT_EQ(modelled.peakReserved, held.reservedBytes) << name;
    EXPECT_GT(modelled.allocations, 700u) << name;
    EXPECT_EQ(modelled.atTheirAddress, modelled.allocations) << name;
  }
}

TEST(AllocatorModel, SmallAndLargeRequestsHavePoolsOfTheirOwn) {
  AllocatorModel model({});
  const auto small = model.allocate(mib, 0);
  EXPECT_EQ(model.reserved(), 2 * mib);
  const auto large = model.allocate(mib + 1, 0);
  EXPECT_EQ(model.reserved(), 22 * mib);
  EXPECT_NE(large, small + mib);
  model.allocate(21 * mib + 1, 0);
  EXPECT_EQ(model.reserved(), 44 * mib) << "beyond 10 MiB a segment is as large as the request, in steps of 2 MiB";
  EXPECT_EQ(model.bytes(), mib + (mib + 512) + 22 * mib) << "a rest of up to 1 MiB is not cut off";
}

TEST(AllocatorModel, TheSmallestBlockThatHoldsARequestIsTaken) {
  AllocatorModel model({});
  const auto first = model.allocate(4 * mib, 0), between = model.allocate(2 * mib, 0),
             second = model.allocate(3 * mib, 0);
  model.allocate(2 * mib, 0);
  model.release(first);
  model.release(second);
  EXPECT_EQ(model.allocate(3 * mib, 0), second);
  model.release(between);  // joins with the free block before it
  EXPECT_EQ(model.allocate(6 * mib, 0), first);
}

TEST(AllocatorModel, StreamsShareNoBlocksAndAFreeSegmentGoesBack) {
  AllocatorModel model({});
  const auto block = model.allocate(512, 0);
  model.release(block);
  EXPECT_NE(model.allocate(512, 7), block);
  EXPECT_EQ(model.reserved(), 4 * mib);
  model.giveBack(block);
  EXPECT_EQ(model.reserved(), 2 * mib);
}

}  // namespace
}  // namespace retrograd

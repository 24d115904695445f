#include "core/questions/memory/address_layout.h"

#include <gtest/gtest.h>

#include "tests/core/formats/memory/small_snapshot.h"

namespace retrograd {
namespace {

using test::SmallSnapshot;

constexpr std::int64_t mib = 1 << 20, at = std::int64_t{1} << 30;

/// Segments of real histories are filled at each event, and the blocks in them are what is held.
TEST(AddressLayout, PiecesFillTheSegmentsOfRealHistories) {
  for (const auto* name : {"plain", "checkpoint", "leak", "aot"}) {
    const auto snapshot = openMemorySnapshot(test::history(name));
    const auto whole = wholeHistory(*snapshot, 0, MemoryPlaces(*snapshot));
    for (std::int64_t event = -1; event < static_cast<std::int64_t>(whole.events); event += 31) {
      const auto layout = addressLayout(whole, event);
      std::uint64_t held = 0;
      std::size_t pieces = 0;
      for (const auto& segment : layout.segments) {
        ASSERT_EQ(segment.firstPiece, pieces);
        auto next = segment.address;
        for (; pieces < segment.firstPiece + segment.pieceCount; ++pieces) {
          ASSERT_EQ(layout.pieces[pieces].address, next);
          next += layout.pieces[pieces].size;
        }
        ASSERT_EQ(next, segment.address + segment.size);
        held += segment.held;
      }
      ASSERT_EQ(pieces, layout.pieces.size());
      ASSERT_EQ(held, heldAfter(whole, event).bytes) << name << " " << event;
    }
    std::uint64_t reserved = 0;
    for (const auto& segment : addressLayout(whole, static_cast<std::int64_t>(whole.events) - 1).segments)
      reserved += segment.size;
    EXPECT_EQ(reserved, whole.reservedBytes) << name;
  }
}

/// 20 MiB with a block of 13 MiB between 4 MiB and 3 MiB that are free.
HeldMemory oneSegment() {
  const auto snapshot = test::read(SmallSnapshot()
                                       .event({"segment_alloc", at, 20 * mib})
                                       .event({"alloc", at, 4 * mib})
                                       .event({"alloc", at + 4 * mib, 13 * mib})
                                       .event({"free_completed", at, 4 * mib})
                                       .pickle());
  return wholeHistory(snapshot, 0, MemoryPlaces(snapshot));
}

TEST(AddressLayout, FreeMemoryHasItsNeighbours) {
  const auto layout = addressLayout(oneSegment(), 3);
  ASSERT_EQ(layout.pieces.size(), 3u);
  EXPECT_EQ(layout.pieces[0].allocation, LaidOutPiece::free);
  EXPECT_EQ(layout.pieces[1].size, 13u * mib);
  const auto free = freeMemory(layout, {}, {});
  EXPECT_EQ(free.bytes, 7u * mib);
  EXPECT_EQ(free.count, 2u);
  ASSERT_EQ(free.largest, 0u);
  const auto [before, behind] = neighboursOf(layout, 0);
  EXPECT_EQ(before, nullptr);
  EXPECT_EQ(behind, &layout.pieces[1]);
  EXPECT_EQ(neighboursOf(layout, 2).before, &layout.pieces[1]);
}

/// Another stream, and a small request, have nothing of it.
TEST(AddressLayout, ARequestHasThePiecesOfItsStreamAndPool) {
  const auto layout = addressLayout(oneSegment(), 3);
  EXPECT_EQ(freeMemory(layout, MemoryRequest{2 * mib, 0}, {}).largest, 0u);
  const auto other = freeMemory(layout, MemoryRequest{2 * mib, 7}, {});
  EXPECT_EQ(other.ofOtherStreams, 7u * mib);
  EXPECT_FALSE(other.largest);
  const auto small = freeMemory(layout, MemoryRequest{512, 0}, {});
  EXPECT_EQ(small.ofOtherSizes, 7u * mib);
  EXPECT_EQ(small.bytes, 7u * mib);
  EXPECT_FALSE(small.largest);
}

}  // namespace
}  // namespace retrograd

#pragma once
#include <optional>
#include <vector>

#include "core/questions/memory/held_memory.h"

namespace retrograd {

/// A part of a segment: a block that is held, or free memory between blocks.
struct LaidOutPiece {
  static constexpr std::int32_t free = -1;
  std::uint64_t address = 0, size = 0;
  std::int32_t allocation = free;  ///< into HeldMemory::allocations
};

/// A segment with what is in it: AddressLayout::pieces from `firstPiece` on.
struct LaidOutSegment {
  std::uint64_t address = 0, size = 0, held = 0;
  std::int64_t stream = 0;
  bool expandable = false, small = false, isPrivate = false;
  std::size_t firstPiece = 0, pieceCount = 0;
};

/// Where everything is that a device's allocator has at a moment.
struct AddressLayout {
  std::vector<LaidOutSegment> segments;  ///< by address
  std::vector<LaidOutPiece> pieces;      ///< by address; those of a segment fill it
};

/// `held`: what is held after the event, or a whole history. Parts of expandable segments that touch are one segment;
/// blocks without a segment, as cudaMallocAsync gives, have one of their own.
AddressLayout addressLayout(const HeldMemory& held, std::int64_t event);

/// A request, as far as it says which free memory may serve it.
struct MemoryRequest {
  std::uint64_t size = 0;
  std::int64_t stream = 0;
};

/// Free memory of a layout. A piece of one stream or pool is never given to a request of another; small requests, of up
/// to 1 MiB, have pools of their own.
struct FreeMemory {
  std::uint64_t bytes = 0;
  std::size_t count = 0;                                                 ///< pieces
  std::uint64_t ofOtherStreams = 0, ofOtherPools = 0, ofOtherSizes = 0;  ///< bytes that the request may not have
  std::optional<std::size_t> largest;  ///< of those that it may have: into AddressLayout::pieces
};
/// Without a request it may have all.
FreeMemory freeMemory(const AddressLayout& layout, const std::optional<MemoryRequest>& request,
                      const AllocatorSettings& settings);

/// The pieces before and behind one in its segment; none at the segment's border.
struct PieceNeighbours {
  const LaidOutPiece *before = nullptr, *behind = nullptr;
};
PieceNeighbours neighboursOf(const AddressLayout& layout, std::size_t piece);

}  // namespace retrograd

#pragma once
#include <cstdint>
#include <vector>

#include "core/questions/memory/block_sizes.h"

namespace retrograd {

/// Memory that the allocator had from the driver, from one event to another.
struct SegmentLife {
  static constexpr std::int64_t outside = -1;  ///< before the first event, or after the last
  std::uint64_t address = 0, size = 0;
  std::int64_t stream = 0, from = outside, to = outside;
  bool expandable = false;  ///< a part of a segment that grows
  bool small = false;       ///< of the pool of small requests
  bool isPrivate = false;   ///< of a pool of its own, as a CUDA graph has

  bool isThereAfter(std::int64_t event) const { return from <= event && (to < 0 || to > event); }
};

/// A block that was held before the first event.
struct OlderBlock {
  std::uint64_t address = 0, size = 0, requested = 0;
  std::uint32_t place = 0;  ///< 0 where it was let go in the history: only what is held in the end has a stack
};

/// The segments of a device's history, and what was held when it begins. A history that was cut, or that begins late,
/// does not say this itself: it follows from what is given back without having been made, and from the end.
struct HistoryOutline {
  std::vector<SegmentLife> segments;
  std::vector<OlderBlock> older;  ///< by address
  std::size_t allocations = 0;    ///< that the history makes
};
HistoryOutline historyOutline(const MemorySnapshot& snapshot, std::size_t device);

}  // namespace retrograd

#pragma once
#include <cstdint>

#include "core/formats/memory/snapshot.h"

namespace retrograd {

/// The constants of PyTorch's CUDACachingAllocator.
namespace allocator {
inline constexpr std::uint64_t unit = 512, smallSize = std::uint64_t{1} << 20, smallSegment = std::uint64_t{2} << 20,
                               largeSegment = std::uint64_t{20} << 20, ownSegment = std::uint64_t{10} << 20;
}  // namespace allocator

/// How the allocator makes a block of what was asked for.
class BlockSizes {
 public:
  explicit BlockSizes(const AllocatorSettings& settings) : settings_(settings) {}

  /// What a request of so many bytes is rounded to.
  std::uint64_t rounded(std::uint64_t requested) const;
  static bool small(std::uint64_t rounded) { return rounded <= allocator::smallSize; }
  /// Whether a block is cut in two where `rest` bytes of it are not needed; else the request takes the whole block.
  bool splits(std::uint64_t rounded, std::uint64_t rest) const {
    if (small(rounded) || settings_.expandableSegments) return rest >= allocator::unit;
    return rounded < maxSplit() && rest > allocator::smallSize;
  }
  /// How much is asked of the driver for a request that fits in no free block.
  static std::uint64_t segment(std::uint64_t rounded) {
    if (small(rounded)) return allocator::smallSegment;
    if (rounded < allocator::ownSegment) return allocator::largeSegment;
    return (rounded + allocator::smallSegment - 1) / allocator::smallSegment * allocator::smallSegment;
  }
  std::uint64_t maxSplit() const {
    return settings_.maxSplitSize < 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(settings_.maxSplitSize);
  }
  bool expandable() const { return settings_.expandableSegments; }

 private:
  AllocatorSettings settings_;
};

}  // namespace retrograd

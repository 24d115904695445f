#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/questions/memory/address_map.h"
#include "core/questions/memory/block_sizes.h"

namespace retrograd {

struct FreeMemory;

/// An allocation that is held: what it takes, and where it came from.
struct HeldBlock {
  std::uint64_t address = 0, size = 0, requested = 0;
  std::uint32_t event = 0, place = 0;
};

/// The blocks of a device's segments while its history is replayed. The addresses say where each request went, so the
/// sizes of blocks are those that the allocator had.
class BlockMap {
 public:
  explicit BlockMap(const AllocatorSettings& settings) : sizes_(settings) {}

  void addSegment(std::uint64_t address, std::uint64_t size);
  void removeSegment(std::uint64_t address);
  /// Memory that the driver adds to an expandable segment, or takes out of it.
  void map(std::uint64_t address, std::uint64_t size);
  void unmap(std::uint64_t address, std::uint64_t size);
  /// Where the segment is older than the history, the block's end is not known: it is as an end of the history says
  /// (expectBlock()), else as the request rounds.
  const HeldBlock& allocate(const MemoryEvent& event, std::uint32_t index);
  /// A block that is held after the last event.
  void expectBlock(const MemoryBlock& block);
  /// The block that is let go; null where its allocation is not in the history.
  const HeldBlock* release(std::uint64_t address);
  const BlockSizes& sizes() const { return sizes_; }
  /// Free memory between the blocks that are held.
  FreeMemory free() const;

  template <class Each>
  void forEachHeld(const Each& each) const {
    for (const auto& block : blocks_)
      if (block.held) each(block.what);
  }
  bool holds(std::uint64_t address) const {
    const auto at = byAddress_.find(address);
    return at != AddressMap::none && blocks_[static_cast<std::size_t>(at)].held;
  }

 private:
  static constexpr std::int32_t none = AddressMap::none;
  struct Block {
    HeldBlock what;
    std::int32_t before = none, after = none;  ///< its neighbours in the segment
    bool held = false, used = false;
  };

  /// A mapped part of an expandable segment.
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };

  std::int32_t lastOf(const Range& range) const;
  void link(std::int32_t before, std::int32_t after);
  Block& at(std::int32_t number) { return blocks_[static_cast<std::size_t>(number)]; }
  std::int32_t add(std::uint64_t address, std::uint64_t size);
  void drop(std::int32_t number);
  void joinWithNext(std::int32_t number);

  BlockSizes sizes_;
  std::vector<Block> blocks_;
  std::vector<std::int32_t> unused_;
  std::vector<Range> ranges_;
  AddressMap byAddress_;
  AddressMap expectedAt_;                                          // in expected_
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected_;  // requested, size
  HeldBlock released_;
  bool knowsSegments_ = true;  ///< each block was in a segment that the history made
};

}  // namespace retrograd

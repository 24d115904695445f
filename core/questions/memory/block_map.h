#pragma once
#include <cstdint>
#include <vector>

#include "core/questions/memory/address_map.h"
#include "core/questions/memory/history_outline.h"

namespace retrograd {

/// An allocation that is held: what it takes, and where it came from.
struct HeldBlock {
  static constexpr std::uint32_t older = ~std::uint32_t{0};  ///< than the first event
  std::uint64_t address = 0, size = 0, requested = 0;
  std::uint32_t event = 0, place = 0;
};

/// The blocks of a device's segments while its history is replayed. The addresses say where each request went, so the
/// sizes of blocks are those that the allocator had.
class BlockMap {
 public:
  /// `outline`: what is there before the first event.
  BlockMap(const AllocatorSettings& settings, const HistoryOutline& outline);

  void addSegment(std::uint64_t address, std::uint64_t size);
  void removeSegment(std::uint64_t address);
  /// Memory that the driver adds to an expandable segment, or takes out of it.
  void map(std::uint64_t address, std::uint64_t size);
  void unmap(std::uint64_t address, std::uint64_t size);
  const HeldBlock& allocate(const MemoryEvent& event, std::uint32_t index);
  /// The block that is let go; null where none was held there.
  const HeldBlock* release(std::uint64_t address);
  const BlockSizes& sizes() const { return sizes_; }

  template <class Each>
  void forEachHeld(const Each& each) const {
    for (const auto& block : blocks_)
      if (block.held) each(block.what);
  }
  bool holds(std::uint64_t address) const {
    const auto at = byAddress_.find(address);
    return at != AddressMap::none && blocks_[at].held;
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

  void begin(const std::vector<OlderBlock>& older);
  void hold(std::int32_t number, const OlderBlock& block);
  std::int32_t lastOf(const Range& range) const;
  void link(std::int32_t before, std::int32_t after);
  Block& at(std::int32_t number) { return blocks_[number]; }
  std::int32_t add(std::uint64_t address, std::uint64_t size);
  void drop(std::int32_t number);
  std::int32_t cut(std::int32_t number, std::uint64_t size);
  void joinWithNext(std::int32_t number);

  BlockSizes sizes_;
  std::vector<Block> blocks_;
  std::vector<std::int32_t> unused_;
  std::vector<Range> ranges_;
  AddressMap byAddress_;
  HeldBlock released_;
};

}  // namespace retrograd

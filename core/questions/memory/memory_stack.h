#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/questions/memory/memory_groups.h"

namespace retrograd {

/// What was held over time, split in a few bands: the groups that hold most at their own peak, and one band for all
/// others. Made once; a part of it is then drawn in a time that is linear in the history.
class MemoryStack {
 public:
  struct Band {
    std::string name;        ///< empty: all other groups
    std::uint64_t peak = 0;  ///< bytes at the band's own peak
    std::size_t groups = 0;  ///< how many are in it
    bool operator==(const Band&) const = default;
  };
  /// A part of the history, at the event of it after which most is held.
  struct Column {
    std::int64_t event = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> parts;  ///< of each band; they sum to bytes
  };

  MemoryStack() = default;
  /// `most`: bands at most, that of the others included. Keeps the history, and two numbers for each allocation.
  MemoryStack(std::shared_ptr<const HeldMemory> whole, const GroupedAllocations& grouped, std::size_t most);

  const std::vector<Band>& bands() const { return bands_; }
  /// Which band each group of GroupedAllocations is in.
  const std::vector<std::uint32_t>& bandOf() const { return bandOf_; }
  std::size_t events() const { return whole_ ? whole_->events : 0; }
  /// The events [begin, end) in `count` columns of equal width, or one for each event where those are fewer.
  std::vector<Column> columns(std::size_t begin, std::size_t end, std::size_t count) const;

 private:
  /// Goes through what is made and let go, in order.
  class Walk;

  const HeldAllocation& at(std::size_t allocation) const { return whole_->allocations[allocation]; }

  std::shared_ptr<const HeldMemory> whole_;
  std::vector<Band> bands_;
  std::vector<std::uint32_t> bandOf_;
  std::vector<std::uint8_t> bandOfAllocation_;
  std::vector<std::uint32_t> freed_;  // allocations that are let go, by the event that does
};

}  // namespace retrograd

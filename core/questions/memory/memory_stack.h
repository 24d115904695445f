#pragma once
#include <cstdint>
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
  /// `most`: bands at most, that of the others included.
  MemoryStack(const HeldMemory& whole, const GroupedAllocations& grouped, std::size_t most);

  const std::vector<Band>& bands() const { return bands_; }
  /// Which band each group of GroupedAllocations is in.
  const std::vector<std::uint32_t>& bandOf() const { return bandOf_; }
  std::size_t events() const { return events_; }
  /// The events [begin, end) in `count` columns of equal width, or one for each event where those are fewer.
  std::vector<Column> columns(std::size_t begin, std::size_t end, std::size_t count) const;

 private:
  struct Change {
    std::int64_t bytes = 0;
    std::uint32_t event = 0, band = 0;
  };

  std::vector<Band> bands_;
  std::vector<std::uint32_t> bandOf_;
  std::vector<Change> changes_;        // by event
  std::vector<std::uint64_t> before_;  // of each band, held before the first event
  std::size_t events_ = 0;
};

}  // namespace retrograd

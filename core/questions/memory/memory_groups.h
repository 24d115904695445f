#pragma once
#include <string>
#include <vector>

#include "core/questions/memory/held_memory.h"

namespace retrograd {

enum class MemoryGrouping : std::uint8_t {
  line,
  module,
  category,
  holder  ///< for whom a block is held, where a history is joined with a trace
};

/// Which group each allocation of a history belongs to.
struct GroupedAllocations {
  std::vector<std::string> names;     ///< of the groups
  std::vector<std::uint32_t> groups;  ///< of each allocation: into names
};
/// By line, module or category; each place's text is made once.
GroupedAllocations groupedAllocations(const HeldMemory& held, const MemoryPlaces& places, MemoryGrouping by);

/// Allocations that belong together, such as those that one line made.
struct MemoryGroup {
  std::string name;
  MemoryCategory category = MemoryCategory::unknown;  ///< of all of them
  std::uint64_t bytes = 0, requested = 0;
  std::size_t count = 0;
};

/// All allocations of a moment in groups, largest first; their bytes are those of the moment.
std::vector<MemoryGroup> memoryGroups(const HeldMemory& held, const MemoryPlaces& places, MemoryGrouping by);
/// Those of a whole history that are held after an event, by groups that were made of it.
std::vector<MemoryGroup> memoryGroupsAt(const HeldMemory& whole, const GroupedAllocations& grouped, std::int64_t event);

/// Bytes of one name in two snapshots.
struct MemoryPair {
  std::string name;
  MemoryCategory category = MemoryCategory::unknown;
  std::uint64_t before = 0, after = 0;

  std::int64_t difference() const { return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before); }
};

/// Groups of two snapshots side by side by name and category, those that differ most first. The sums of `before` and of
/// `after` are those of the groups.
std::vector<MemoryPair> memoryDifference(const std::vector<MemoryGroup>& before, const std::vector<MemoryGroup>& after);

}  // namespace retrograd

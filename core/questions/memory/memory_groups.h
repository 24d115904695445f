#pragma once
#include <string>
#include <vector>

#include "core/questions/memory/held_memory.h"

namespace retrograd {

enum class MemoryGrouping : std::uint8_t { line, module, category };

/// Allocations that belong together, such as those that one line made.
struct MemoryGroup {
  std::string name;
  MemoryCategory category = MemoryCategory::unknown;  ///< of all of them
  std::uint64_t bytes = 0, requested = 0;
  std::size_t count = 0;
};

/// All allocations of a moment in groups, largest first; their bytes are those of the moment.
std::vector<MemoryGroup> memoryGroups(const HeldMemory& held, const MemoryPlaces& places, MemoryGrouping by);

}  // namespace retrograd

#pragma once
#include <string>
#include <vector>

#include "core/questions/memory/memory_groups.h"

namespace retrograd {

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

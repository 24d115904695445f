#include "core/questions/memory/memory_groups.h"

#include <algorithm>
#include <map>

namespace retrograd {

std::vector<MemoryGroup> memoryGroups(const HeldMemory& held, const MemoryPlaces& places, MemoryGrouping by) {
  const auto nameOf = [&](const HeldAllocation& allocation) {
    switch (by) {
      case MemoryGrouping::line: return places.line(allocation.place);
      case MemoryGrouping::module: return places.modules(allocation.place);
      case MemoryGrouping::category: break;
    }
    return std::string(name(allocation.category));
  };
  std::map<std::pair<std::string, MemoryCategory>, MemoryGroup> groups;
  for (const auto& allocation : held.allocations) {
    auto& group = groups[{nameOf(allocation), allocation.category}];
    group.bytes += allocation.size;
    group.requested += allocation.requested;
    ++group.count;
  }
  std::vector<MemoryGroup> sorted;
  for (auto& [key, group] : groups) {
    std::tie(group.name, group.category) = key;
    sorted.push_back(std::move(group));
  }
  std::ranges::stable_sort(sorted, std::greater(), &MemoryGroup::bytes);
  return sorted;
}

}  // namespace retrograd

#include "core/questions/memory/memory_groups.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <unordered_map>

namespace retrograd {
namespace {

/// Sums allocations by group and category, largest first.
class GroupSums {
 public:
  void add(std::uint32_t group, const HeldAllocation& allocation) {
    auto& sum = sums_[{group, allocation.category}];
    sum.bytes += allocation.size;
    sum.requested += allocation.requested;
    ++sum.count;
  }
  std::vector<MemoryGroup> sorted(const std::vector<std::string>& names) {
    std::vector<MemoryGroup> sorted;
    for (auto& [key, sum] : sums_) {
      sum.name = names[key.first];
      sum.category = key.second;
      sorted.push_back(std::move(sum));
    }
    std::ranges::stable_sort(sorted, [](const MemoryGroup& a, const MemoryGroup& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
    });
    return sorted;
  }

 private:
  std::map<std::pair<std::uint32_t, MemoryCategory>, MemoryGroup> sums_;
};

}  // namespace

GroupedAllocations groupedAllocations(const HeldMemory& held, const MemoryPlaces& places, MemoryGrouping by) {
  GroupedAllocations grouped;
  std::unordered_map<std::string, std::uint32_t> byName;
  std::unordered_map<std::uint32_t, std::uint32_t> byKey;  // place, or category
  for (const auto& allocation : held.allocations) {
    const bool byCategory = by == MemoryGrouping::category;
    const auto key = byCategory ? static_cast<std::uint32_t>(allocation.category) : allocation.place;
    const auto [group, isNew] = byKey.try_emplace(key);
    if (isNew) {
      const auto text = byCategory                   ? std::string(name(allocation.category))
                        : by == MemoryGrouping::line ? places.line(key)
                                                     : places.modules(key);
      group->second = byName.emplace(text, static_cast<std::uint32_t>(byName.size())).first->second;
      if (group->second == grouped.names.size()) grouped.names.push_back(text);
    }
    grouped.groups.push_back(group->second);
  }
  return grouped;
}

std::vector<MemoryGroup> memoryGroups(const HeldMemory& held, const MemoryPlaces& places, MemoryGrouping by) {
  const auto grouped = groupedAllocations(held, places, by);
  GroupSums sums;
  for (std::size_t i = 0; i < held.allocations.size(); ++i) sums.add(grouped.groups[i], held.allocations[i]);
  return sums.sorted(grouped.names);
}

std::vector<MemoryGroup> memoryGroupsAt(const HeldMemory& whole, const GroupedAllocations& grouped,
                                        std::int64_t event) {
  GroupSums sums;
  for (std::size_t i = 0; i < whole.allocations.size(); ++i)
    if (whole.allocations[i].isHeldAfter(event)) sums.add(grouped.groups[i], whole.allocations[i]);
  return sums.sorted(grouped.names);
}

std::vector<MemoryPair> memoryDifference(const std::vector<MemoryGroup>& before,
                                         const std::vector<MemoryGroup>& after) {
  std::map<std::pair<std::string, MemoryCategory>, MemoryPair> pairs;
  for (const auto& group : before) pairs[{group.name, group.category}].before += group.bytes;
  for (const auto& group : after) pairs[{group.name, group.category}].after += group.bytes;
  std::vector<MemoryPair> sorted;
  for (auto& [key, pair] : pairs) {
    std::tie(pair.name, pair.category) = key;
    sorted.push_back(std::move(pair));
  }
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& pair) { return std::abs(pair.difference()); });
  return sorted;
}

}  // namespace retrograd

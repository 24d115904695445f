#include "core/questions/memory/memory_difference.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

namespace retrograd {

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

#include "core/questions/memory_join/recorded_memory.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "core/questions/memory_join/joined_findings.h"

namespace retrograd {

RecordedMemory recordedMemory(const std::string& path, std::shared_ptr<const MemorySnapshot> snapshot,
                              std::size_t device, const Progress& progress) {
  RecordedMemory recorded;
  recorded.path = path;
  recorded.device = device;
  recorded.snapshot = std::move(snapshot);
  const auto places = std::make_shared<const MemoryPlaces>(*recorded.snapshot);
  recorded.places = places;
  recorded.history = wholeHistory(*recorded.snapshot, device, *places, {}, progress);
  if (const auto event = outOfMemoryEvent(*recorded.snapshot, device))
    recorded.failed = static_cast<std::int64_t>(*event);
  recorded.findings =
      memoryFindings(*recorded.snapshot, device, *places, heldAfter(recorded.history, recorded.first()));
  return recorded;
}

void joinRecorded(RecordedMemory& recorded, TracedStep step) {
  recorded.join = joinMemory(recorded.history, *recorded.places, std::move(step));
  const auto moment = joinedMoment(*recorded.join, recorded.first());
  for (auto& finding : joinedFindings(*recorded.join, *recorded.places, moment, recorded.first()))
    recorded.findings.push_back(std::move(finding));
  std::ranges::stable_sort(recorded.findings, std::greater(), &MemoryFinding::bytes);
}

GroupedAllocations groupedAllocations(const RecordedMemory& recorded, MemoryGrouping by) {
  if (by != MemoryGrouping::holder || !recorded.join) return groupedAllocations(recorded.history, *recorded.places, by);
  GroupedAllocations grouped;
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (const auto& allocation : recorded.join->allocations) {
    const auto [found, isNew] =
        numbers.try_emplace(holderOf(*recorded.join, allocation), static_cast<std::uint32_t>(numbers.size()));
    if (isNew) grouped.names.push_back(found->first);
    grouped.groups.push_back(found->second);
  }
  return grouped;
}

BlockFacts factsOf(const MemoryPlaces& places, const MemoryJoin& join, const JoinedAllocation& block) {
  BlockFacts facts;
  facts.line = places.line(block.what.place);
  facts.holder = holderOf(join, block);
  facts.maker = facts.line;
  if (block.parameter >= 0) {
    const auto& parameter = join.trace.parameters[block.parameter].name;
    facts.maker = block.what.category == MemoryCategory::optimizer ? "state of " + parameter : parameter;
  } else if (const auto op = std::max(block.traced, block.within); op >= 0) {
    const auto& traced = join.trace.allocations[op];
    facts.maker = traced.module.empty() ? traced.op : traced.op + " of " + traced.module;
    if (block.traced >= 0) facts.lastReader = traced.lastReader;
    const bool hasLine = !places.shortLine(block.what.place).empty() && block.level != JoinLevel::exact;
    if (!hasLine && !traced.line.empty()) facts.line = traced.line;
    if (block.traced >= 0 && !traced.parameter.empty()) facts.holder += " of " + traced.parameter;
  }
  return facts;
}

}  // namespace retrograd

#include "core/questions/memory_join/recorded_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/base/byte_size.h"

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
  worstFirst(recorded.findings);
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

namespace {

using Kind = MemoryFinding::Kind;

/// Blocks about which there is the same to say, by op and module.
struct Alike {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  std::string what, line;
};

/// What there is to say of a block that is held at the moment, if anything.
std::optional<std::pair<Kind, std::string>> complaint(const JoinedAllocation& block, const TracedAllocation& traced,
                                                      std::int64_t event) {
  const bool isSaved = traced.use == TracedAllocation::Use::saved && !block.recomputed;
  if (isSaved && traced.firstBackward == 0)
    return std::pair(Kind::neverRead, std::string("no op of the backward reads it"));
  if (isSaved && !traced.copyOf.empty())
    return std::pair(Kind::savedTwice, "a copy of " + traced.copyOf + ", which is saved too");
  if (isSaved && !traced.storedAs.empty())
    return std::pair(Kind::wideDtype, "its one reader turns it into " + traced.storedAs + ": save that");
  if (block.couldBeFreed >= 0 && block.couldBeFreed <= event && !block.recomputed)
    return std::pair(Kind::heldLate, "held after its last reader, " + traced.lastReader);
  return std::nullopt;
}

}  // namespace

std::vector<MemoryFinding> joinedFindings(const MemoryJoin& join, const MemoryPlaces& places,
                                          const JoinedMoment& moment, std::int64_t event) {
  std::map<std::tuple<Kind, std::string, std::string>, Alike> all;
  std::uint64_t whole = 0;
  std::vector<MemoryFinding> found;
  for (const auto i : moment.blocks) {
    const auto& block = join.allocations[i];
    whole += block.what.size;
    if (block.traced < 0) continue;
    const auto& traced = join.trace.allocations[block.traced];
    const auto said = complaint(block, traced, event);
    if (!said) continue;
    auto& alike = all[{said->first, traced.op, said->second}];
    alike.bytes += block.what.size;
    ++alike.count;
    if (alike.line.empty()) {
      alike.line = places.shortLine(block.what.place).empty() ? traced.line : places.shortLine(block.what.place);
      alike.what = traced.module.empty() ? traced.op : traced.op + " of " + traced.module;
    }
  }
  for (const auto& [key, alike] : all)
    if (1000 * alike.bytes > whole)
      found.push_back(
          {std::get<0>(key), alike.bytes,
           fmt::format("{} in {} block(s), such as {} at {}: {}", bytesText(static_cast<std::int64_t>(alike.bytes)),
                       alike.count, alike.what, alike.line, std::get<2>(key)),
           alike.line});
  for (const auto i : moment.blocks) {
    const auto& block = join.allocations[i];
    const bool isLibrarys = block.what.category == MemoryCategory::workspace;  // which keeps it
    if (block.within < 0 || isLibrarys || 10 * block.what.size < whole) continue;
    found.push_back({Kind::workspace, block.what.size,
                     fmt::format("{} {}, while it runs", bytesText(static_cast<std::int64_t>(block.what.size)),
                                 holderOf(join, block)),
                     places.shortLine(block.what.place)});
  }
  return found;
}

}  // namespace retrograd

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/base/byte_size.h"
#include "core/questions/memory_join/joined_findings.h"

namespace retrograd {
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
  std::ranges::stable_sort(found, std::greater(), &MemoryFinding::bytes);
  return found;
}

}  // namespace retrograd

#include <fmt/format.h>

#include "app/cli/look/memory_report.h"
#include "core/base/byte_size.h"

namespace retrograd::cli {
namespace {

std::string shareText(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? std::string()
                    : fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string sizeText(std::uint64_t bytes) { return bytesText(static_cast<std::int64_t>(bytes)); }

void printMoment(const OpenedMemory& opened, const MemoryArguments& arguments) {
  const auto& held = opened.held;
  fmt::print("device {}: {} events, {} segments with {}\n", opened.device, held.events,
             opened.snapshot->segments.size(), sizeText(held.reservedBytes));
  fmt::print("peak: {} bytes ({}){}, {} of them asked for\n", held.peakBytes, sizeText(held.peakBytes),
             held.peakEvent < 0 ? std::string(" before the first event") : fmt::format(" at event {}", held.peakEvent),
             held.requestedPeakBytes);
  if (const auto failed = outOfMemoryEvent(*opened.snapshot, opened.device); failed && arguments.at != "oom")
    fmt::print("a request failed at event {}; --at oom shows what was held then\n", *failed);
  if (arguments.at != "peak") fmt::print("at event {}: {} bytes ({})\n", held.event, held.bytes, sizeText(held.bytes));
}

void printGroups(const std::vector<MemoryGroup>& groups, std::uint64_t whole, std::size_t rows, bool withCategory) {
  std::size_t shown = 0;
  std::uint64_t rest = 0;
  for (const auto& group : groups) {
    if (shown++ >= rows) {
      rest += group.bytes;
      continue;
    }
    fmt::print("{:>15} {:>8} {:>6}  {}{}\n", group.bytes, shareText(group.bytes, whole), group.count,
               withCategory ? fmt::format("{:<11} ", name(group.category)) : std::string(), group.name);
  }
  if (rest > 0) fmt::print("{:>15} {:>8} {:>6}  in {} more\n", rest, shareText(rest, whole), "", groups.size() - rows);
}

void printBlock(const OpenedMemory& opened, const JoinedAllocation& block) {
  const auto facts = factsOf(*opened.places, *opened.join, block);
  const auto at = [](std::int64_t event) {
    return event < 0 ? std::string("never") : fmt::format("at event {}", event);
  };
  fmt::print("{:>15}  {}, {} ({})\n{:>15}  {}; made {}, freed {}", block.what.size, facts.maker, facts.line,
             name(block.level), "", facts.holder,
             block.what.from < 0 ? std::string("before the history") : at(block.what.from), at(block.what.to));
  if (block.couldBeFreed >= 0) fmt::print(", last read by {} before event {}", facts.lastReader, block.couldBeFreed);
  fmt::print("\n");
}

/// For whom the bytes of the moment are held, and block by block who made and who reads them.
void printJoin(const MemoryArguments& arguments, const OpenedMemory& opened) {
  const auto whole = opened.held.bytes;
  const auto bytes = [&](JoinLevel level) { return opened.joined.bytes[level]; };
  fmt::print("\njoined with {} step(s): {} bytes exact, {} aligned, {} unknown\n", opened.join->steps,
             bytes(JoinLevel::exact), bytes(JoinLevel::aligned), bytes(JoinLevel::unknown));
  if (!agrees(*opened.join))
    fmt::print("no allocation agrees in line and size, and no frame names a node: is the history of this program?\n");
  fmt::print("\n{:>15} {:>8} {:>6}  held for\n", "bytes", "share", "blocks");
  printGroups(opened.joined.holders, whole, arguments.rows, false);
  fmt::print("\n{:>15}  block\n", "bytes");
  for (std::size_t i = 0; i < std::min(arguments.rows, opened.joined.blocks.size()); ++i)
    printBlock(opened, opened.join->allocations[opened.joined.blocks[i]]);
}

void printFindings(const std::vector<MemoryFinding>& findings) {
  if (findings.empty()) return;
  fmt::print("\nfindings\n");
  for (const auto& finding : findings) fmt::print("  {}: {}\n", name(finding.kind), finding.text);
}

void printModel(const OpenedMemory& opened) {
  const auto& model = *opened.model;
  fmt::print("\nmodel of the allocator: peak {} bytes, {} reserved; {} of {} allocations where they were in fact\n",
             model.peakBytes, sizeText(model.peakReserved), model.atTheirAddress, model.allocations);
  for (const auto& result : opened.whatIfs) {
    const auto freed = static_cast<std::int64_t>(model.peakBytes) - static_cast<std::int64_t>(result.peakBytes);
    fmt::print("what if {} {}: peak {} bytes, {} {} ({} tensors of {} module(s) in all steps)\n",
               name(result.change.kind), result.change.module, result.peakBytes, bytesText(freed < 0 ? -freed : freed),
               freed < 0 ? "more" : "less", result.tensors, result.modules);
  }
}

}  // namespace

void printMemoryText(const MemoryArguments& arguments, const OpenedMemory& opened) {
  printMoment(opened, arguments);
  fmt::print("\n{:>15} {:>8} {:>6}  category\n", "bytes", "share", "blocks");
  printGroups(opened.categories, opened.held.bytes, opened.categories.size(), false);
  if (arguments.by != "category") {
    fmt::print("\n{:>15} {:>8} {:>6}  {:<11} {}\n", "bytes", "share", "blocks", "category", arguments.by);
    printGroups(opened.groups, opened.held.bytes, arguments.rows, true);
  }
  if (opened.join) printJoin(arguments, opened);
  printFindings(opened.findings);
  if (opened.model) printModel(opened);
}

}  // namespace retrograd::cli

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/number_text.h"
#include "core/export/op_facts.h"
#include "core/questions/memory/memory_groups.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MemoryArguments {
  std::string path, at = "peak", by = "line", format = "text";
  std::optional<std::uint64_t> device;
  std::size_t rows = 12;
};

/// A snapshot and what is asked of it.
struct OpenedMemory {
  std::unique_ptr<const MemorySnapshot> snapshot;
  std::unique_ptr<const MemoryPlaces> places;
  std::size_t device = 0;
  HeldMemory held;
  std::vector<MemoryGroup> groups, categories;
};

std::size_t deviceOf(const MemorySnapshot& snapshot, const MemoryArguments& arguments) {
  if (!arguments.device) return firstDevice(snapshot);
  if (*arguments.device < snapshot.events.size()) return *arguments.device;
  throw Error(ErrorCode::badUse,
              fmt::format("has {} device(s), from 0 on; device {} is not among them", snapshot.events.size(),
                          *arguments.device),
              arguments.path);
}

MemoryMoment momentOf(const MemorySnapshot& snapshot, std::size_t device, const MemoryArguments& arguments) {
  if (arguments.at == "peak") return {};
  if (arguments.at == "oom") {
    if (const auto event = outOfMemoryEvent(snapshot, device)) return {event};
    throw Error(ErrorCode::badUse, "its history has no request that failed (an event \"oom\"); leave --at out",
                arguments.path);
  }
  const auto event = positionIn(arguments.at);
  if (!event) throw Error(ErrorCode::badUse, "--at: '" + arguments.at + "' is neither peak, oom nor an event's number");
  if (const auto count = snapshot.events[device].size(); *event >= count)
    throw Error(ErrorCode::badUse, fmt::format("has {} events, from 0 on; {} is not among them", count, *event),
                arguments.path);
  return {event};
}

MemoryGrouping groupingOf(const std::string& by) {
  return by == "line" ? MemoryGrouping::line : by == "module" ? MemoryGrouping::module : MemoryGrouping::category;
}

OpenedMemory openMemory(const MemoryArguments& arguments, const Progress& progress) {
  requireFile(arguments.path);
  OpenedMemory opened;
  opened.snapshot = openMemorySnapshot(arguments.path, progress);
  opened.device = deviceOf(*opened.snapshot, arguments);
  opened.places = std::make_unique<const MemoryPlaces>(*opened.snapshot);
  const auto moment = momentOf(*opened.snapshot, opened.device, arguments);
  opened.held = heldMemory(*opened.snapshot, opened.device, *opened.places, moment, progress);
  opened.categories = memoryGroups(opened.held, *opened.places, MemoryGrouping::category);
  opened.groups = memoryGroups(opened.held, *opened.places, groupingOf(arguments.by));
  return opened;
}

Json groupJson(const MemoryGroup& group) {
  return {{"name", group.name},
          {"category", name(group.category)},
          {"bytes", group.bytes},
          {"requested_bytes", group.requested},
          {"blocks", group.count}};
}

Json memoryJson(const MemoryArguments& arguments, const OpenedMemory& opened) {
  const auto& held = opened.held;
  Json json{{"path", arguments.path},
            {"device", opened.device},
            {"devices", opened.snapshot->events.size()},
            {"events", held.events},
            {"segments", opened.snapshot->segments.size()},
            {"reserved_bytes", held.reservedBytes},
            {"peak_bytes", held.peakBytes},
            {"requested_peak_bytes", held.requestedPeakBytes},
            {"peak_event", held.peakEvent < 0 ? Json() : Json(held.peakEvent)},
            {"at",
             {{"event", held.event < 0 ? Json() : Json(held.event)},
              {"bytes", held.bytes},
              {"requested_bytes", held.requested}}},
            {"end_bytes", held.endBytes},
            {"categories", Json::array()},
            {"by", arguments.by},
            {"groups", Json::array()}};
  for (const auto& group : opened.categories)
    json["categories"].push_back({{"name", group.name}, {"bytes", group.bytes}, {"blocks", group.count}});
  for (const auto& group : opened.groups) json["groups"].push_back(groupJson(group));
  return json;
}

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

void printMemory(const MemoryArguments& arguments, const OpenedMemory& opened) {
  printMoment(opened, arguments);
  fmt::print("\n{:>15} {:>8} {:>6}  category\n", "bytes", "share", "blocks");
  printGroups(opened.categories, opened.held.bytes, opened.categories.size(), false);
  if (arguments.by == "category") return;
  fmt::print("\n{:>15} {:>8} {:>6}  {:<11} {}\n", "bytes", "share", "blocks", "category", arguments.by);
  printGroups(opened.groups, opened.held.bytes, arguments.rows, true);
}

int runMemory(const MemoryArguments& arguments, const Progress& progress) {
  const auto opened = openMemory(arguments, progress);
  if (arguments.format == "json") fmt::print("{}\n", dumpJson(memoryJson(arguments, opened), 1));
  else printMemory(arguments, opened);
  return allWell;
}

Run setUpMemory(Parser parser) {
  auto arguments = std::make_shared<MemoryArguments>();
  parser
      .add("snapshot", arguments->path, "what torch.cuda.memory._dump_snapshot wrote; .gz and .xz are read as they are")
      .required();
  parser
      .add("--at", arguments->at,
           "the moment: the peak, the request that failed (oom), or after an event of this number")
      .showDefault()
      .typeName("peak|oom|EVENT");
  parser.add("--by", arguments->by, "what the bytes of the moment are listed by")
      .oneOf({"line", "module", "category"})
      .showDefault();
  parser.add("--device", arguments->device, "the device's number; without it the first that has a history");
  parser.add("--rows", arguments->rows, "rows of the list").showDefault();
  addFormat(parser, arguments->format);
  return [arguments](const Progress& progress) { return runMemory(*arguments, progress); };
}

const Registration registrationMemory(
    "memory", "show what held a GPU's memory at its peak, from a snapshot of PyTorch's allocator", setUpMemory);

}  // namespace
}  // namespace retrograd::cli

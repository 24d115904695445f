#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/look/memory_report.h"
#include "core/base/byte_size.h"
#include "core/questions/memory/memory_groups.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What each layer keeps at the end of the forward of the step that has the peak, else of the last.
std::vector<MemoryGroup> layersOf(const OpenedMemory& opened) {
  auto event = HeldAllocation::outside;
  for (const auto end : opened.join->forwardEnds)
    if (event < 0 || end <= opened.held.peakEvent) event = end;
  return event < 0 ? std::vector<MemoryGroup>() : bytesByLayer(*opened.join, event);
}

/// The tables of a pair, each with its name.
std::vector<std::pair<std::string, std::vector<MemoryPair>>> tablesOf(const MemoryArguments& arguments,
                                                                      const OpenedMemory& before,
                                                                      const OpenedMemory& after) {
  std::vector<std::pair<std::string, std::vector<MemoryPair>>> tables;
  tables.emplace_back("category", memoryDifference(before.categories, after.categories));
  if (arguments.by != "category") tables.emplace_back(arguments.by, memoryDifference(before.groups, after.groups));
  if (!before.join || !after.join) return tables;
  tables.emplace_back("held for", memoryDifference(before.joined.holders, after.joined.holders));
  tables.emplace_back("layer, at the forward's end", memoryDifference(layersOf(before), layersOf(after)));
  return tables;
}

Json sideJson(const std::string& path, const OpenedMemory& opened) {
  Json side{{"path", path},
            {"device", opened.device},
            {"peak_bytes", opened.held.peakBytes},
            {"requested_peak_bytes", opened.held.requestedPeakBytes},
            {"at_bytes", opened.held.bytes},
            {"end_bytes", opened.held.endBytes}};
  return side;
}

using StepPair = std::pair<std::optional<MemoryStep>, std::optional<MemoryStep>>;

/// Steps with a backward, of both.
std::vector<StepPair> stepsOf(const OpenedMemory& before, const OpenedMemory& after) {
  std::vector<StepPair> steps;
  const auto add = [&](const OpenedMemory& opened, auto side) {
    std::size_t count = 0;
    for (const auto& step : opened.held.steps) {
      if (!step.isWhole) continue;
      if (count == steps.size()) steps.emplace_back();
      steps[count++].*side = step;
    }
  };
  add(before, &StepPair::first);
  add(after, &StepPair::second);
  return steps;
}

Json stepsJson(const OpenedMemory& before, const OpenedMemory& after) {
  Json steps = Json::array();
  const auto sideOf = [](const std::optional<MemoryStep>& step) {
    if (!step) return Json();
    return Json{
        {"start_bytes", step->startBytes}, {"forward_bytes", step->forwardBytes}, {"peak_bytes", step->peakBytes}};
  };
  for (const auto& [a, b] : stepsOf(before, after)) steps.push_back({{"a", sideOf(a)}, {"b", sideOf(b)}});
  return steps;
}

void printJson(const MemoryArguments& arguments, const OpenedMemory& before, const OpenedMemory& after) {
  Json json{{"a", sideJson(arguments.path, before)},
            {"b", sideJson(arguments.other, after)},
            {"by", arguments.by},
            {"steps", stepsJson(before, after)}};
  for (const auto& [title, pairs] : tablesOf(arguments, before, after)) {
    const auto key = title == "category"     ? "categories"
                     : title == "held for"   ? "held_for"
                     : title == arguments.by ? "groups"
                                             : "layers";
    json[key] = Json::array();
    for (const auto& pair : pairs) {
      Json row{{"name", pair.name}};
      if (title == arguments.by) row["category"] = name(pair.category);
      row["a_bytes"] = pair.before;
      row["b_bytes"] = pair.after;
      row["difference_bytes"] = pair.difference();
      json[key].push_back(std::move(row));
    }
  }
  fmt::print("{}\n", dumpJson(json, 1));
}

void printTable(const std::string& title, const std::vector<MemoryPair>& pairs, std::size_t rows, bool withCategory) {
  fmt::print("\n{:>15} {:>15} {:>15}  {}{}\n", "more or less", "A", "B", withCategory ? "category    " : "", title);
  std::size_t shown = 0;
  for (const auto& pair : pairs) {
    if (shown++ >= rows) break;
    fmt::print("{:>+15} {:>15} {:>15}  {}{}\n", pair.difference(), pair.before, pair.after,
               withCategory ? fmt::format("{:<11} ", name(pair.category)) : std::string(), pair.name);
  }
  if (pairs.size() > rows) fmt::print("{:>15} {:>15} {:>15}  {} more\n", "", "", "", pairs.size() - rows);
}

void printSteps(const OpenedMemory& before, const OpenedMemory& after) {
  fmt::print("\n{:>4} {:>15} {:>15} {:>15} {:>15}\n", "step", "A forward's end", "A peak", "B forward's end", "B peak");
  const auto text = [](const std::optional<MemoryStep>& step, std::uint64_t MemoryStep::* bytes) {
    return step ? std::to_string((*step).*bytes) : std::string("-");
  };
  std::size_t number = 0;
  for (const auto& [a, b] : stepsOf(before, after))
    fmt::print("{:>4} {:>15} {:>15} {:>15} {:>15}\n", number++, text(a, &MemoryStep::forwardBytes),
               text(a, &MemoryStep::peakBytes), text(b, &MemoryStep::forwardBytes), text(b, &MemoryStep::peakBytes));
}

}  // namespace

void printMemoryPair(const MemoryArguments& arguments, const OpenedMemory& before, const OpenedMemory& after) {
  if (arguments.format == "json") return printJson(arguments, before, after);
  const auto difference = static_cast<std::int64_t>(after.held.bytes) - static_cast<std::int64_t>(before.held.bytes);
  fmt::print("A: {}, {} bytes at event {}\nB: {}, {} bytes at event {}\nB holds {} {} ({:+} bytes)\n", arguments.path,
             before.held.bytes, before.held.event, arguments.other, after.held.bytes, after.held.event,
             bytesText(difference < 0 ? -difference : difference), difference < 0 ? "less" : "more", difference);
  for (const auto& [title, pairs] : tablesOf(arguments, before, after))
    printTable(title, pairs, arguments.rows, title == arguments.by && title != "category");
  printSteps(before, after);
}

}  // namespace retrograd::cli

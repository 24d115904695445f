#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/look/memory_report.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

using Json = nlohmann::ordered_json;

Json groupJson(const MemoryGroup& group) {
  return {{"name", group.name},
          {"category", name(group.category)},
          {"bytes", group.bytes},
          {"requested_bytes", group.requested},
          {"blocks", group.count}};
}

/// An event of the history, or null where it is outside.
Json eventJson(std::int64_t event) { return event < 0 ? Json() : Json(event); }

Json stepJson(const MemoryStep& step) {
  return {{"from", step.from},
          {"to", step.to},
          {"start_bytes", step.startBytes},
          {"forward_bytes", step.forwardBytes},
          {"peak_bytes", step.peakBytes}};
}

Json blockJson(const OpenedMemory& opened, const JoinedAllocation& block) {
  const auto facts = factsOf(*opened.places, *opened.join, block);
  return {{"bytes", block.what.size},
          {"requested_bytes", block.what.requested},
          {"category", name(block.what.category)},
          {"level", name(block.level)},
          {"made_by", facts.maker},
          {"line", facts.line},
          {"held_for", facts.holder},
          {"last_reader", facts.lastReader},
          {"made", eventJson(block.what.from)},
          {"freed", eventJson(block.what.to)},
          {"could_be_freed", eventJson(block.couldBeFreed)}};
}

void addJoin(Json& json, const MemoryArguments& arguments, const OpenedMemory& opened) {
  const auto bytes = [&](JoinLevel level) { return opened.joined.bytes[level]; };
  json["joined"] = {{"exact_bytes", bytes(JoinLevel::exact)},
                    {"aligned_bytes", bytes(JoinLevel::aligned)},
                    {"unknown_bytes", bytes(JoinLevel::unknown)},
                    {"steps", opened.join->steps}};
  json["held_for"] = Json::array();
  for (const auto& holder : opened.joined.holders)
    json["held_for"].push_back({{"name", holder.name}, {"bytes", holder.bytes}, {"blocks", holder.count}});
  json["blocks"] = Json::array();
  for (const auto i : opened.joined.blocks) {
    if (json["blocks"].size() >= arguments.rows) break;
    json["blocks"].push_back(blockJson(opened, opened.join->allocations[i]));
  }
}

void addModel(Json& json, const OpenedMemory& opened) {
  json["model"] = {{"peak_bytes", opened.model->peakBytes},
                   {"reserved_peak_bytes", opened.model->peakReserved},
                   {"allocations", opened.model->allocations},
                   {"at_their_address", opened.model->atTheirAddress}};
  json["what_if"] = Json::array();
  for (const auto& result : opened.whatIfs)
    json["what_if"].push_back({{"change", name(result.change.kind)},
                               {"module", result.change.module},
                               {"modules", result.modules},
                               {"tensors", result.tensors},
                               {"peak_bytes", result.peakBytes},
                               {"freed_bytes", static_cast<std::int64_t>(opened.model->peakBytes) -
                                                   static_cast<std::int64_t>(result.peakBytes)}});
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
            {"peak_event", eventJson(held.peakEvent)},
            {"at", {{"event", eventJson(held.event)}, {"bytes", held.bytes}, {"requested_bytes", held.requested}}},
            {"end_bytes", held.endBytes},
            {"categories", Json::array()},
            {"by", arguments.by},
            {"groups", Json::array()}};
  for (const auto& group : opened.categories)
    json["categories"].push_back({{"name", group.name}, {"bytes", group.bytes}, {"blocks", group.count}});
  for (const auto& group : opened.groups) json["groups"].push_back(groupJson(group));
  json["steps"] = Json::array();
  for (const auto& step : opened.held.steps)
    if (step.isWhole) json["steps"].push_back(stepJson(step));
  json["findings"] = Json::array();
  for (const auto& finding : opened.findings)
    json["findings"].push_back({{"kind", name(finding.kind)},
                                {"bytes", finding.bytes},
                                {"text", finding.text},
                                {"line", finding.line.empty() ? Json() : Json(finding.line)}});
  if (opened.join) addJoin(json, arguments, opened);
  if (opened.model) addModel(json, opened);
  return json;
}

}  // namespace

void printMemoryJson(const MemoryArguments& arguments, const OpenedMemory& opened) {
  fmt::print("{}\n", dumpJson(memoryJson(arguments, opened), 1));
}

}  // namespace retrograd::cli

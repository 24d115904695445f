#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/schedule/schedule_simulation.h"

namespace retrograd {
namespace {

using Json = nlohmann::json;

void requireKeys(const Json& object, const std::set<std::string>& known, const std::string& what) {
  if (!object.is_object()) badInput(what + " is not an object");
  for (const auto& [key, value] : object.items())
    if (!known.contains(key))
      badInput(fmt::format("{} has no '{}'; it may have {}", what, key.substr(0, 40), fmt::join(known, ", ")));
}

std::optional<double> number(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (!found->is_number() || found->get<double>() < 0) badInput(fmt::format("'{}' is not a number from 0", key));
  return found->get<double>();
}

StageCost stageCost(const Json& object) {
  requireKeys(object, {"F", "B", "I", "W", "activation_bytes", "name"}, "a stage");
  StageCost cost;
  cost.forward = number(object, "F").value_or(cost.forward);
  auto input = number(object, "I"), weight = number(object, "W"), both = number(object, "B");
  if (both && !input && !weight) input = weight = *both / 2;
  cost.backwardInput = input.value_or(cost.backwardInput);
  cost.backwardWeight = weight.value_or(cost.backwardWeight);
  cost.backward = both.value_or(cost.backwardInput + cost.backwardWeight);
  if (const auto bytes = object.find("activation_bytes"); bytes != object.end()) {
    if (!bytes->is_number_integer() || *bytes < 0 || *bytes > std::int64_t{1} << 50)
      badInput("'activation_bytes' is not a number of bytes");
    cost.activationBytes = bytes->get<std::int64_t>();
  }
  return cost;
}

std::int32_t stageNumber(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer() || *found < 0 || *found > 1 << 20)
    badInput(fmt::format("'{}' of an edge is not the number of a stage", key));
  return found->get<std::int32_t>();
}

EdgeCost edgeCost(const Json& object) {
  requireKeys(object, {"source", "destination", "F", "B"}, "an edge");
  return {{stageNumber(object, "source"), stageNumber(object, "destination")},
          number(object, "F").value_or(0),
          number(object, "B").value_or(0)};
}

ScheduleCosts parse(std::string_view text) {
  const auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) badInput("not JSON");
  requireKeys(json, {"unit", "transfer", "edges", "overlap_hides", "stages"}, "the file of costs");
  ScheduleCosts costs;
  if (const auto unit = json.find("unit"); unit != json.end()) {
    if (!unit->is_string()) badInput("'unit' is not a text");
    costs.unit = unit->get<std::string>();
  }
  costs.transfer = number(json, "transfer").value_or(0);
  if (const auto edges = json.find("edges"); edges != json.end()) {
    if (!edges->is_array()) badInput("'edges' is not a list");
    for (const auto& edge : *edges) costs.edges.push_back(edgeCost(edge));
  }
  if (const auto hides = json.find("overlap_hides"); hides != json.end()) {
    if (!hides->is_boolean()) badInput("'overlap_hides' is not true or false");
    costs.overlapHides = hides->get<bool>();
  }
  const auto stages = json.find("stages");
  if (stages == json.end() || !stages->is_array() || stages->empty())
    badInput("'stages' is not a list of at least one stage");
  for (const auto& stage : *stages) {
    try {
      costs.stages.push_back(stageCost(stage));
    } catch (const Error& error) {
      throw error.at(fmt::format("stage {}", costs.stages.size()));
    }
  }
  return costs;
}

}  // namespace

ScheduleCosts readScheduleCosts(std::string_view json, const std::string& name) {
  try {
    return parse(json);
  } catch (const Error& error) {
    throw error.at(name);
  }
}

}  // namespace retrograd

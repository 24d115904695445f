#include "core/formats/jobs/save_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/formats/jobs/plan_state.h"

namespace retrograd {
namespace {

/// `facts`: of the forward or of the whole graph.
PlanValue describe(const PlanState& state, const ValueFacts& facts, std::size_t value) {
  PlanValue described;
  described.name = facts.graph().valueName(value);
  if (const auto* type = facts.type(value)) {
    if (type->kind == fx::Type::Kind::number) described.dtype = "size";
    if (type->kind == fx::Type::Kind::tensor) described.dtype = shortName(type->dtype);
  }
  described.sizes = facts.sizes(value);
  described.bytes = facts.bytes(value);
  described.isInput = facts.isInput(value);
  if (facts.root(value) != value) described.viewOf = facts.graph().valueName(facts.root(value));
  described.op = facts.target(value);
  described.policy = facts.policy(value);
  described.fate = state.fate(described.name);
  if (const auto* source = facts.source(value))
    described.file = source->file, described.line = source->line, described.code = source->code;
  if (const auto found = state.whole.named(described.name))
    described.layer = state.places[*found].layer, described.slot = state.places[*found].slot;
  return described;
}

/// Rows sort by where their graph has them; those of one group of layers by the layers, then by the place in a layer.
using RowOrder = std::tuple<std::size_t, std::vector<std::size_t>, std::string>;

RowOrder orderOf(const PlanState& state, const PlanTable& table, const PlanRow& row) {
  const auto& value = table.values[row.values.front()];
  if (row.layers.empty()) return {state.whole.named(value.name).value_or(state.whole.count()), {}, {}};
  const auto& group = state.groups[state.layers[row.layers.front()].group];
  return {state.whole.inputs() + group.layers.front().front(), row.layers, value.slot};
}

void fold(const PlanState& state, PlanTable& table) {
  std::vector<std::size_t> byLayer(table.values.size());
  std::iota(byLayer.begin(), byLayer.end(), 0);
  std::stable_sort(byLayer.begin(), byLayer.end(),
                   [&](auto a, auto b) { return table.values[a].layer < table.values[b].layer; });
  std::map<std::tuple<std::size_t, std::string, Fate, std::string>, PlanRow> folded;
  std::vector<std::pair<RowOrder, PlanRow>> rows;
  for (const auto i : byLayer) {
    const auto& value = table.values[i];
    if (!value.layer) {
      rows.emplace_back(RowOrder(), PlanRow{{}, {i}});
      continue;
    }
    auto& row = folded[{state.layers[*value.layer].group, value.slot, value.fate, value.policy}];
    row.layers.push_back(*value.layer);
    row.values.push_back(i);
  }
  for (auto& [slot, row] : folded) rows.emplace_back(RowOrder(), std::move(row));
  for (auto& [order, row] : rows) order = orderOf(state, table, row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [order, row] : rows) table.rows.push_back(std::move(row));
}

PlanTable residualsOf(const PlanState& state) {
  PlanTable table;
  for (const auto value : state.saved) {
    table.values.push_back(describe(state, state.forward, value));
    const auto* source =
        value < state.forward.inputs() && state.graphs.sources[value] ? &*state.graphs.sources[value] : nullptr;
    if (source != nullptr) table.values.back().program = jobs::plainName(source->name);
  }
  fold(state, table);
  return table;
}

PlanTable computedOf(const PlanState& state) {
  PlanTable table;
  for (auto value = state.whole.inputs(); value < state.border; ++value) {
    if (!state.whole.isTensor(value)) continue;
    table.values.push_back(describe(state, state.whole, value));
    table.values.back().policy = state.policy(value);
  }
  fold(state, table);
  return table;
}

/// Values of one graph, the storage of each counted once.
class StorageCount {
 public:
  explicit StorageCount(const ValueFacts& facts) : facts_(facts) {}
  void add(std::size_t value) {
    ++total_.values;
    if (!roots_.insert(facts_.root(value)).second) return;
    const auto bytes = facts_.bytes(facts_.root(value));
    total_.unknown += !bytes;
    total_.bytes += bytes.value_or(0);
  }
  const PlanTotal& total() const { return total_; }

 private:
  const ValueFacts& facts_;
  std::unordered_set<std::size_t> roots_;
  PlanTotal total_;
};

PlanTotal totalOf(const PlanState& state, bool ofInputs) {
  StorageCount count(state.forward);
  for (const auto value : state.saved)
    if (state.forward.isInput(value) == ofInputs) count.add(value);
  return count.total();
}

void countLayers(const PlanState& state, std::vector<PlanLayer>& layers) {
  std::vector<StorageCount> counts(layers.size(), StorageCount(state.forward));
  for (const auto value : state.saved) {
    const auto found = state.whole.named(state.forward.graph().valueName(value));
    if (found && state.places[*found].layer && !state.forward.isInput(value))
      counts[*state.places[*found].layer].add(value);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].savedBytes = counts[i].total().bytes;
}

/// Activations that the joint graph's backward reads. Tuples are counted by their items.
PlanTotal allSavedOf(const PlanState& state) {
  StorageCount count(state.whole);
  for (auto value = state.whole.inputs(); value < state.border; ++value) {
    const auto& readers = state.readers[value];
    const bool isRead =
        std::any_of(readers.begin(), readers.end(), [&](std::size_t reader) { return reader >= state.border; });
    if (isRead && state.whole.type(value) != nullptr && !state.whole.isInput(value)) count.add(value);
  }
  return count.total();
}

std::vector<PolicyCount> policiesOf(const PlanTable& computed) {
  std::map<std::string, PolicyCount> counts;
  for (const auto& value : computed.values) {
    auto& count = counts[value.policy];
    count.policy = value.policy;
    ++(value.fate == Fate::saved ? count.saved : value.fate == Fate::recomputed ? count.recomputed : count.unused);
  }
  std::vector<PolicyCount> policies;
  for (auto& [policy, count] : counts) policies.push_back(std::move(count));
  return policies;
}

/// Policies that were not followed, but for those that a difference names.
std::vector<PlanFinding> brokenOf(const SavePlan& plan) {
  std::set<std::string> named;
  for (const auto& difference : plan.differences) named.insert(difference.odd.value);
  std::vector<PlanFinding> broken;
  for (const auto& value : plan.computed.values) {
    const bool isBroken = (value.policy == "MUST_SAVE" && value.fate == Fate::recomputed) ||
                          (value.policy == "MUST_RECOMPUTE" && value.fate == Fate::saved);
    if (isBroken && !named.contains(value.name))
      broken.push_back(
          {fmt::format("{} has the policy {} and is {}", value.name, value.policy, name(value.fate)), value.name});
  }
  return broken;
}

}  // namespace

std::string_view name(Fate fate) {
  return fate == Fate::saved ? "saved" : fate == Fate::recomputed ? "recomputed" : "not needed";
}

SavePlan savePlanOf(const JobGraphs& graphs) {
  const PlanState state(graphs);
  SavePlan plan;
  plan.layers = state.layers;
  countLayers(state, plan.layers);
  plan.residuals = residualsOf(state);
  plan.computed = computedOf(state);
  plan.policies = policiesOf(plan.computed);
  plan.saved = totalOf(state, false);
  plan.inputs = totalOf(state, true);
  if (graphs.joint) plan.allSaved = allSavedOf(state);
  plan.differences = differencesOf(state);
  plan.broken = brokenOf(plan);
  return plan;
}

}  // namespace retrograd

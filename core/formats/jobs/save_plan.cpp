#include "core/formats/jobs/save_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/base/number_text.h"
#include "core/formats/jobs/equal_layers.h"
#include "core/formats/jobs/listing.h"

namespace retrograd {
namespace {

using Kind = fx::Expression::Kind;

const fx::Type* typeOf(const fx::Graph& graph, std::size_t value) {
  const auto type = graph.valueType(value);
  return type == fx::noIndex ? nullptr : &graph.types[type];
}

bool isTensor(const fx::Graph& graph, std::size_t value) {
  const auto* type = typeOf(graph, value);
  return type != nullptr && type->kind == fx::Type::Kind::tensor;
}

const fx::Node* nodeOf(const fx::Graph& graph, std::size_t value) { return value < graph.inputs.size() ? nullptr : &graph.nodes[value - graph.inputs.size()]; }

/// The value of which `value` is an item; itself where it is none.
std::size_t itemOf(const fx::Graph& graph, std::size_t value) {
  const auto* node = nodeOf(graph, value);
  return node != nullptr && node->call.is(Kind::item) && node->call.items[0].is(Kind::value) ? static_cast<std::size_t>(node->call.items[0].integer) : value;
}

/// "torch.ops.aten.mm.default"; empty for what is no call of an op.
std::string_view targetOf(const fx::Graph& graph, std::size_t value) {
  const auto* node = nodeOf(graph, itemOf(graph, value));
  return node != nullptr && node->call.is(Kind::call) && node->call.items[0].is(Kind::path) ? std::string_view(node->call.items[0].text) : std::string_view();
}

/// Ops whose results share the storage of their first argument.
bool isView(std::string_view target) {
  static const std::unordered_set<std::string_view> views{
      "_conj",     "_neg_view", "_reshape_alias", "_unsafe_view", "alias",  "as_strided",      "chunk",        "detach",           "diagonal", "expand",
      "imag",      "narrow",    "permute",        "real",         "select", "slice",           "split",        "split_with_sizes", "squeeze",  "t",
      "transpose", "unbind",    "unfold",         "unsqueeze",    "view",   "view_as_complex", "view_as_real", "view_of"};
  for (const auto prefix : {std::string_view("torch.ops.aten."), std::string_view("torch.ops.prims.")})
    if (target.starts_with(prefix)) return views.contains(target.substr(prefix.size(), target.find('.', prefix.size()) - prefix.size()));
  return false;
}

/// The value that has the storage which `value` is in.
std::size_t rootOf(const fx::Graph& graph, std::size_t value) {
  while (isView(targetOf(graph, value))) {
    const auto& call = nodeOf(graph, itemOf(graph, value))->call;
    if (call.items.size() < 2 || !call.items[1].is(Kind::value)) break;
    const auto base = static_cast<std::size_t>(call.items[1].integer);
    if (base >= value) break;
    value = base;
  }
  return value;
}

std::vector<std::int64_t> sizesOf(const fx::Type& type, const SizeBindings& bindings) {
  std::vector<std::int64_t> sizes;
  for (const auto& text : type.sizes) {
    const auto size = numberIn<std::int64_t>(text);
    sizes.push_back(size ? *size : evaluateSize(text, bindings).value_or(-1));
  }
  return sizes;
}

/// Elements that differ, times the size of one: a dimension of stride 0 has one. Nothing for what is no tensor or has a size that is not known.
std::optional<std::int64_t> bytesOf(const fx::Graph& graph, std::size_t value, const SizeBindings& bindings) {
  const auto* type = typeOf(graph, value);
  if (type != nullptr && type->kind == fx::Type::Kind::number) return 0;
  if (type == nullptr || type->kind != fx::Type::Kind::tensor) return std::nullopt;
  const auto sizes = sizesOf(*type, bindings);
  auto bytes = itemSize(type->dtype);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool isRepeated = i < type->strides.size() && type->strides[i] == "0" && sizes[i] > 1;
    if (sizes[i] < 0 || __builtin_mul_overflow(bytes, isRepeated ? 1 : sizes[i], &bytes)) return std::nullopt;
  }
  return bytes;
}

std::string_view policyOf(const fx::Graph& graph, std::size_t value) {
  const auto* node = nodeOf(graph, value);
  return node == nullptr || node->source == fx::noIndex ? std::string_view() : std::string_view(graph.sources[node->source].policy);
}

using ValueNames = std::unordered_map<std::string_view, std::size_t>;

ValueNames valuesOf(const fx::Graph& graph) {
  ValueNames values;
  for (std::size_t i = 0; i < graph.valueCount(); ++i) values.emplace(graph.valueName(i), i);
  return values;
}

/// Storages of one graph, each counted once.
class StorageCount {
 public:
  StorageCount(const fx::Graph& graph, const SizeBindings& bindings) : graph_(graph), bindings_(bindings) {}
  void add(std::size_t value) {
    ++total_.values;
    const auto root = rootOf(graph_, value);
    if (!roots_.insert(root).second) return;
    const auto bytes = bytesOf(graph_, root, bindings_);
    total_.unknown += !bytes;
    total_.bytes += bytes.value_or(0);
  }
  const PlanTotal& total() const { return total_; }

 private:
  const fx::Graph& graph_;
  const SizeBindings& bindings_;
  std::unordered_set<std::size_t> roots_;
  PlanTotal total_;
};

/// Which of the equal layers a value is in, and where in it.
struct Place {
  std::optional<std::size_t> layer;
  std::string slot;
};

class Planner {
 public:
  explicit Planner(const JobGraphs& graphs)
      : graphs_(graphs),
        whole_(graphs.joint ? *graphs.joint : graphs.forward),
        border_(graphs.joint ? jobs::backwardBorder(whole_) : whole_.nodes.size()),
        inWhole_(valuesOf(whole_)),
        inForward_(valuesOf(graphs.forward)),
        inBackward_(valuesOf(graphs.backward)) {
    const auto& outputs = graphs.forward.outputs;
    for (auto i = graphs.results; i < outputs.size(); ++i)
      if (outputs[i].value.is(Kind::value)) savedValues_.push_back(static_cast<std::size_t>(outputs[i].value.integer));
    for (const auto value : savedValues_) saved_.insert(graphs.forward.valueName(value));
  }

  SavePlan make() {
    findReaders();
    findLayers();
    placeValues();
    nameModules();
    readResiduals();
    readComputed();
    countTotals();
    countPolicies();
    for (std::size_t group = 0; group < groups_.size(); ++group) compareLayers(group);
    findBroken();
    return std::move(plan_);
  }

 private:
  std::size_t inputCount() const { return whole_.inputs.size(); }
  bool isForward(std::size_t value) const { return value < inputCount() + border_; }
  std::size_t layerIndex(std::size_t group, std::size_t number) const { return firstLayer_[group] + number; }

  Fate fateOf(const std::string& name) const {
    if (saved_.contains(name)) return Fate::saved;
    const auto found = inBackward_.find(name);
    return found != inBackward_.end() && found->second >= graphs_.backward.inputs.size() ? Fate::recomputed : Fate::unused;
  }

  /// As the forward graph has it, where PyTorch adds tags of its own; of ops that only the backward runs as the joint graph has it.
  std::string forwardPolicy(std::size_t value) const {
    const auto found = inForward_.find(whole_.valueName(value));
    return std::string(found == inForward_.end() ? policyOf(whole_, value) : policyOf(graphs_.forward, found->second));
  }

  void findReaders() {
    readers_.resize(whole_.valueCount());
    for (std::size_t i = 0; i < whole_.nodes.size(); ++i) fx::forEachValue(whole_.nodes[i].call, [&](std::size_t value) { readers_[value].push_back(i); });
    isReturned_.resize(whole_.valueCount());
    for (std::size_t i = 0; i < std::min(graphs_.results, whole_.outputs.size()); ++i)
      fx::forEachValue(whole_.outputs[i].value, [&](std::size_t value) { isReturned_[value] = 1; });
  }

  void findLayers() {
    groups_ = jobs::equalLayers(whole_, border_);
    std::sort(groups_.begin(), groups_.end(), [](const auto& a, const auto& b) { return a.layers < b.layers; });
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const auto& layers = groups_[group].layers;
      firstLayer_.push_back(plan_.layers.size());
      for (std::size_t number = 0; number < layers.size(); ++number) plan_.layers.push_back({group, number, layers[number].size(), {}});
    }
  }

  void placeValues() {
    places_.resize(whole_.valueCount());
    for (std::size_t group = 0; group < groups_.size(); ++group)
      for (std::size_t number = 0; number < groups_[group].layers.size(); ++number) {
        const auto& nodes = groups_[group].layers[number];
        for (std::size_t i = 0; i < nodes.size(); ++i) places_[inputCount() + nodes[i]] = {layerIndex(group, number), fmt::format("{:06}", i)};
      }
    for (std::size_t i = 0; i < inputCount(); ++i) placeInput(i);
    for (auto i = border_; i < whole_.nodes.size(); ++i) placeBackwardNode(i);
  }

  /// An input is in the layer that alone reads it in the forward.
  void placeInput(std::size_t input) {
    std::optional<Place> found;
    for (const auto reader : readers_[input]) {
      if (reader >= border_) continue;
      const auto& place = places_[inputCount() + reader];
      if (!place.layer || (found && found->layer != place.layer)) return;
      if (found) continue;
      std::size_t position = 0, count = 0;
      fx::forEachValue(whole_.nodes[reader].call, [&](std::size_t value) { (value == input ? position : count) = ++count; });
      found = Place{place.layer, fmt::format("{}.{}", place.slot, position)};
    }
    if (found) places_[input] = *found;
  }

  /// What the backward computes of one layer's values alone belongs to that layer: 1/n of a norm, a weight transposed.
  void placeBackwardNode(std::size_t node) {
    Place place;
    bool isOfOneLayer = true;
    fx::forEachValue(whole_.nodes[node].call, [&](std::size_t value) {
      const auto& operand = places_[value];
      isOfOneLayer &= operand.layer && (!place.layer || place.layer == operand.layer);
      place.layer = operand.layer;
      place.slot += (place.slot.empty() ? "" : ",") + operand.slot;
    });
    constexpr std::size_t longest = 200;  // a chain of gradients has no place in a layer
    if (!isOfOneLayer || !place.layer || place.slot.size() > longest) return;
    place.slot += fmt::format(":{}", targetOf(whole_, inputCount() + node));
    if (whole_.nodes[node].call.is(Kind::item)) place.slot += fx::toText(whole_.nodes[node].call.items[1], {});
    while (!backwardSlots_.emplace(*place.layer, place.slot).second) place.slot += "'";
    places_[inputCount() + node] = std::move(place);
  }

  /// A layer's module is what the names of the inputs that it alone reads begin with, up to a dot.
  void nameModules() {
    for (std::size_t i = 0; i < graphs_.forward.inputs.size(); ++i) {
      const auto found = inWhole_.find(graphs_.forward.inputs[i].name);
      const auto& source = graphs_.sources[i];
      if (found == inWhole_.end() || !places_[found->second].layer || !source || source->kind == jobs::InputSource::Kind::input) continue;
      takePrefix(plan_.layers[*places_[found->second].layer].module, jobs::plainName(source->name));
    }
    for (auto& layer : plan_.layers)
      layer.module = layer.module.substr(0, layer.module.find_last_of('.') == std::string::npos ? 0 : layer.module.find_last_of('.'));
  }

  static void takePrefix(std::string& prefix, const std::string& name) {
    if (prefix.empty()) {
      prefix = name;
      return;
    }
    const auto common = static_cast<std::size_t>(std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first - prefix.begin());
    if (common == 0) prefix = ".";
    if (common > 0) prefix.resize(common);
  }

  PlanValue describe(const fx::Graph& graph, std::size_t value) const {
    PlanValue described;
    described.name = graph.valueName(value);
    if (const auto* type = typeOf(graph, value)) {
      if (type->kind == fx::Type::Kind::number) described.dtype = "size";
      if (type->kind == fx::Type::Kind::tensor) described.dtype = shortName(type->dtype), described.sizes = sizesOf(*type, graphs_.sizes);
    }
    described.bytes = bytesOf(graph, value, graphs_.sizes);
    const auto root = rootOf(graph, value);
    described.isInput = root < graph.inputs.size();
    if (root != value) described.viewOf = graph.valueName(root);
    described.op = targetOf(graph, value);
    described.fate = fateOf(described.name);
    if (const auto* node = nodeOf(graph, value); node != nullptr && node->source != fx::noIndex) {
      const auto& source = graph.sources[node->source];
      described.file = source.file, described.line = source.line, described.code = source.code;
    }
    if (const auto found = inWhole_.find(described.name); found != inWhole_.end())
      described.layer = places_[found->second].layer, described.slot = places_[found->second].slot;
    return described;
  }

  void readResiduals() {
    const auto& forward = graphs_.forward;
    for (const auto value : savedValues_) {
      auto residual = describe(forward, value);
      if (value < forward.inputs.size() && graphs_.sources[value]) residual.program = jobs::plainName(graphs_.sources[value]->name);
      residual.policy = policyOf(forward, value);
      plan_.residuals.values.push_back(std::move(residual));
    }
    fold(plan_.residuals);
  }

  void readComputed() {
    for (auto value = inputCount(); value < inputCount() + border_; ++value) {
      if (!isTensor(whole_, value)) continue;
      plan_.computed.values.push_back(describe(whole_, value));
      plan_.computed.values.back().policy = forwardPolicy(value);
    }
    fold(plan_.computed);
  }

  void fold(PlanTable& table) const {
    std::map<std::tuple<std::size_t, std::string, Fate, std::string>, PlanRow> folded;
    std::vector<std::size_t> byLayer(table.values.size());
    std::iota(byLayer.begin(), byLayer.end(), 0);
    std::stable_sort(byLayer.begin(), byLayer.end(), [&](auto a, auto b) { return table.values[a].layer < table.values[b].layer; });
    for (const auto i : byLayer) {
      const auto& value = table.values[i];
      if (!value.layer) {
        table.rows.push_back({{}, {i}});
        continue;
      }
      auto& row = folded[{plan_.layers[*value.layer].group, value.slot, value.fate, value.policy}];
      row.layers.push_back(*value.layer);
      row.values.push_back(i);
    }
    for (auto& [slot, row] : folded) table.rows.push_back(std::move(row));
    std::stable_sort(table.rows.begin(), table.rows.end(), [&](const auto& a, const auto& b) { return orderOf(table, a) < orderOf(table, b); });
  }

  std::tuple<std::size_t, std::vector<std::size_t>, std::string> orderOf(const PlanTable& table, const PlanRow& row) const {
    const auto& value = table.values[row.values.front()];
    if (!row.layers.empty()) return {inputCount() + groups_[plan_.layers[row.layers.front()].group].layers.front().front(), row.layers, value.slot};
    const auto found = inWhole_.find(value.name);
    return {found == inWhole_.end() ? whole_.valueCount() : found->second, {}, {}};
  }

  void countTotals() {
    StorageCount activations(graphs_.forward, graphs_.sizes), inputs(graphs_.forward, graphs_.sizes), all(whole_, graphs_.sizes);
    for (std::size_t i = 0; i < savedValues_.size(); ++i) (plan_.residuals.values[i].isInput ? inputs : activations).add(savedValues_[i]);
    plan_.saved = activations.total();
    plan_.inputs = inputs.total();
    if (!graphs_.joint) return;
    for (auto value = inputCount(); value < inputCount() + border_; ++value) {
      const bool isRead = std::any_of(readers_[value].begin(), readers_[value].end(), [&](std::size_t reader) { return reader >= border_; });
      const bool isTuple = typeOf(whole_, value) == nullptr;  // its items are counted
      if (isRead && !isTuple && rootOf(whole_, value) >= inputCount()) all.add(value);
    }
    plan_.allSaved = all.total();
  }

  void countPolicies() {
    std::map<std::string, PolicyCount> counts;
    for (const auto& value : plan_.computed.values) {
      auto& count = counts[value.policy];
      count.policy = value.policy;
      ++(value.fate == Fate::saved ? count.saved : value.fate == Fate::recomputed ? count.recomputed : count.unused);
    }
    for (auto& [policy, count] : counts) plan_.policies.push_back(std::move(count));
  }

  /// By slot the values of a group's layers; nothing where a layer has none.
  using Slots = std::map<std::string, std::vector<std::optional<std::size_t>>>;

  Slots slotsOf(std::size_t group) const {
    Slots slots;
    const auto count = groups_[group].layers.size();
    for (std::size_t value = 0; value < whole_.valueCount(); ++value) {
      const auto& place = places_[value];
      if (!place.layer || plan_.layers[*place.layer].group != group || typeOf(whole_, value) == nullptr) continue;
      auto& values = slots[place.slot];
      values.resize(count);
      values[plan_.layers[*place.layer].number] = value;
    }
    std::erase_if(slots, [&](const auto& slot) { return isOfBackwardAlone(slot.second); });
    return slots;
  }

  /// Values that no layer computes in the forward: all gradients are such.
  bool isOfBackwardAlone(const std::vector<std::optional<std::size_t>>& values) const {
    return std::none_of(values.begin(), values.end(),
                        [&](const auto& value) { return value && (isForward(*value) || fateOf(whole_.valueName(*value)) == Fate::saved); });
  }

  PlanTreatment treatmentOf(const std::optional<std::size_t>& value) const {
    PlanTreatment treatment;
    if (!value) return treatment;
    treatment.value = whole_.valueName(*value);
    treatment.fate = fateOf(treatment.value);
    treatment.policy = forwardPolicy(*value);
    if (graphs_.joint) treatment.jointPolicy = policyOf(whole_, *value);
    return treatment;
  }

  void compareLayers(std::size_t group) {
    const auto last = groups_[group].layers.size() - 1;
    const auto lastWay = wayToResult(group, last);
    for (const auto& [slot, values] : slotsOf(group)) {
      const auto treatments = treatmentsOf(group, values);
      const auto way = lastWay.find(slot);
      for (std::size_t i = 1; i < treatments.size(); ++i) {
        auto difference = differenceOf(treatments[i], treatments[0]);
        const auto isOfLast = way != lastWay.end() && difference.odd.layers == std::vector{layerIndex(group, last)};
        difference.reason = reasonOf(difference, isOfLast, isOfLast && way->second);
        plan_.differences.push_back(std::move(difference));
      }
    }
  }

  /// `isResult`: the value is a result of the last layer, which PyTorch marks where another checkpointed region reads it.
  PlanDifference::Reason reasonOf(const PlanDifference& difference, bool isOnWayOfLast, bool isResult) const {
    const auto& [odd, others] = std::tie(difference.odd, difference.others);
    const auto found = inWhole_.find(odd.value.empty() ? others.value : odd.value);
    const bool isInput = found != inWhole_.end() && rootOf(whole_, found->second) < inputCount();
    if (odd.jointPolicy == others.jointPolicy && isOnWayOfLast && (isResult || odd.policy == others.policy)) return PlanDifference::Reason::lastLayer;
    return isInput && odd.jointPolicy == others.jointPolicy && odd.policy == others.policy ? PlanDifference::Reason::inMemory : PlanDifference::Reason::none;
  }

  /// What happens at one slot, the treatment of the most layers first, else that of the first layer.
  std::vector<PlanTreatment> treatmentsOf(std::size_t group, const std::vector<std::optional<std::size_t>>& values) const {
    std::map<std::tuple<Fate, std::string, std::string>, PlanTreatment> classes;
    for (std::size_t number = 0; number < values.size(); ++number) {
      auto treatment = treatmentOf(values[number]);
      auto& kept = classes[{treatment.fate, treatment.policy, treatment.jointPolicy}];
      if (kept.layers.empty()) kept = std::move(treatment);
      kept.layers.push_back(layerIndex(group, number));
    }
    std::vector<PlanTreatment> sorted;
    for (auto& [key, treatment] : classes) sorted.push_back(std::move(treatment));
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return std::tuple(b.layers.size(), a.layers.front()) < std::tuple(a.layers.size(), b.layers.front()); });
    return sorted;
  }

  /// The slots from which only results of a layer are computed, the results included. True: a result itself. What becomes of them depends on who reads
  /// the result.
  std::map<std::string, bool> wayToResult(std::size_t group, std::size_t number) const {
    std::map<std::string, bool> way;
    const auto& nodes = groups_[group].layers[number];
    const auto layer = layerIndex(group, number);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const auto value = inputCount() + *node;
      const auto& readers = readers_[value];
      const bool isResult = isReturned_[value] ||
                            std::any_of(readers.begin(), readers.end(), [&](std::size_t r) { return r < border_ && places_[inputCount() + r].layer != layer; });
      const bool leadsThere = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](std::size_t r) {
        const auto& place = places_[inputCount() + r];
        return place.layer == layer && way.contains(place.slot);
      });
      if (isResult || leadsThere) way[places_[value].slot] = isResult;
    }
    return way;
  }

  PlanDifference differenceOf(const PlanTreatment& odd, const PlanTreatment& others) const {
    PlanDifference difference{odd, others, {}, {}, {}, 0, {}, {}};
    const auto found = inWhole_.find(odd.value.empty() ? others.value : odd.value);
    if (found == inWhole_.end()) return difference;
    const auto value = found->second;
    difference.op = targetOf(whole_, value);
    difference.bytes = bytesOf(whole_, value, graphs_.sizes);
    if (const auto* type = typeOf(whole_, value); type->kind == fx::Type::Kind::tensor)
      difference.type = fmt::format("{}[{}]", shortName(type->dtype), fmt::join(sizesOf(*type, graphs_.sizes), ", "));
    if (const auto* node = nodeOf(whole_, value); node != nullptr && node->source != fx::noIndex)
      difference.file = whole_.sources[node->source].file, difference.line = whole_.sources[node->source].line;
    return difference;
  }

  void findBroken() {
    std::set<std::string> named;
    for (const auto& difference : plan_.differences) named.insert(difference.odd.value);
    for (const auto& value : plan_.computed.values) {
      const bool isBroken = (value.policy == "MUST_SAVE" && value.fate == Fate::recomputed) || (value.policy == "MUST_RECOMPUTE" && value.fate == Fate::saved);
      if (isBroken && !named.contains(value.name))
        plan_.broken.push_back(fmt::format("{} has the policy {} and is {}", value.name, value.policy, name(value.fate)));
    }
  }

  const JobGraphs& graphs_;
  const fx::Graph& whole_;  ///< the joint graph, else the forward
  std::size_t border_;      ///< nodes of it that are the forward's
  ValueNames inWhole_, inForward_, inBackward_;
  std::vector<std::size_t> savedValues_;  ///< in the forward graph
  std::unordered_set<std::string_view> saved_;
  std::vector<std::vector<std::size_t>> readers_;  ///< by value the nodes
  std::vector<char> isReturned_;
  std::vector<jobs::LayerGroup> groups_;
  std::vector<std::size_t> firstLayer_;  ///< by group, into the plan's layers
  std::vector<Place> places_;            ///< by value
  std::set<std::pair<std::size_t, std::string>> backwardSlots_;
  SavePlan plan_;
};

}  // namespace

std::string_view name(Fate fate) { return fate == Fate::saved ? "saved" : fate == Fate::recomputed ? "recomputed" : "not needed"; }

SavePlan savePlanOf(const JobGraphs& graphs) { return Planner(graphs).make(); }

}  // namespace retrograd

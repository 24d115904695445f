#include "core/formats/jobs/plan_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/number_text.h"
#include "core/formats/jobs/line_links.h"

namespace retrograd {
namespace {

using Kind = fx::Expression::Kind;

/// Ops whose results share the storage of their first argument.
bool isView(std::string_view target) {
  static const std::unordered_set<std::string_view> views{"_conj",          "_neg_view",
                                                          "_reshape_alias", "_unsafe_view",
                                                          "alias",          "as_strided",
                                                          "chunk",          "detach",
                                                          "diagonal",       "expand",
                                                          "imag",           "narrow",
                                                          "permute",        "real",
                                                          "select",         "slice",
                                                          "split",          "split_with_sizes",
                                                          "squeeze",        "t",
                                                          "transpose",      "unbind",
                                                          "unfold",         "unsqueeze",
                                                          "view",           "view_as_complex",
                                                          "view_as_real",   "view_of"};
  for (const auto prefix : {std::string_view("torch.ops.aten."), std::string_view("torch.ops.prims.")})
    if (target.starts_with(prefix))
      return views.contains(target.substr(prefix.size(), target.find('.', prefix.size()) - prefix.size()));
  return false;
}

/// What both names begin with.
std::string commonStart(const std::string& a, const std::string& b) {
  return {a.begin(), std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first};
}

}  // namespace

ValueFacts::ValueFacts(const fx::Graph& graph, const SizeBindings& bindings) : graph_(graph), bindings_(bindings) {
  for (std::size_t value = 0; value < count(); ++value) {
    named_.emplace(graph.valueName(value), value);
    const auto base = viewed(value);
    roots_.push_back(base < value ? roots_[base] : value);
  }
}

std::optional<std::size_t> ValueFacts::named(std::string_view name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? std::nullopt : std::optional(found->second);
}

const fx::Type* ValueFacts::type(std::size_t value) const {
  const auto type = graph_.valueType(value);
  return type == fx::noIndex ? nullptr : &graph_.types[type];
}

bool ValueFacts::isTensor(std::size_t value) const {
  return type(value) != nullptr && type(value)->kind == fx::Type::Kind::tensor;
}

const fx::Node* ValueFacts::node(std::size_t value) const {
  return value < inputs() ? nullptr : &graph_.nodes[value - inputs()];
}

const fx::Source* ValueFacts::source(std::size_t value) const {
  const auto* made = node(value);
  return made == nullptr || made->source == fx::noIndex ? nullptr : &graph_.sources[made->source];
}

std::string_view ValueFacts::policy(std::size_t value) const {
  return source(value) == nullptr ? std::string_view() : std::string_view(source(value)->policy);
}

/// The value of which `value` is an item; itself where it is none.
std::size_t ValueFacts::producer(std::size_t value) const {
  const auto* made = node(value);
  return made != nullptr && made->call.is(Kind::item) && made->call.items[0].is(Kind::value)
             ? made->call.items[0].valueIndex()
             : value;
}

std::string_view ValueFacts::target(std::size_t value) const {
  const auto* made = node(producer(value));
  return made != nullptr && made->call.is(Kind::call) && made->call.items[0].is(Kind::path)
             ? std::string_view(made->call.items[0].text)
             : std::string_view();
}

/// The first argument of a view; `value` itself where it is none.
std::size_t ValueFacts::viewed(std::size_t value) const {
  if (!isView(target(value))) return value;
  const auto& call = node(producer(value))->call;
  return call.items.size() > 1 && call.items[1].is(Kind::value) ? call.items[1].valueIndex() : value;
}

std::vector<std::int64_t> ValueFacts::sizes(std::size_t value) const {
  std::vector<std::int64_t> sizes;
  if (!isTensor(value)) return sizes;
  for (const auto& text : type(value)->sizes) {
    const auto size = numberIn<std::int64_t>(text);
    sizes.push_back(size ? *size : evaluateSize(text, bindings_).value_or(-1));
  }
  return sizes;
}

std::optional<std::int64_t> ValueFacts::bytes(std::size_t value) const {
  if (type(value) != nullptr && type(value)->kind == fx::Type::Kind::number) return 0;
  if (!isTensor(value)) return std::nullopt;
  const auto all = sizes(value);
  const auto& strides = type(value)->strides;
  auto bytes = itemSize(type(value)->dtype);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool isRepeated = i < strides.size() && strides[i] == "0" && all[i] > 1;
    if (all[i] < 0 || __builtin_mul_overflow(bytes, isRepeated ? 1 : all[i], &bytes)) return std::nullopt;
  }
  return bytes;
}

PlanState::PlanState(const JobGraphs& given)
    : graphs(given),
      forward(given.forward, given.sizes),
      whole(given.joint ? *given.joint : given.forward, given.sizes),
      border(given.joint ? whole.inputs() + jobs::backwardBorder(*given.joint) : whole.count()) {
  const auto& outputs = graphs.forward.outputs;
  for (auto i = graphs.results; i < outputs.size(); ++i)
    if (outputs[i].value.is(Kind::value)) saved.push_back(outputs[i].value.valueIndex());
  for (const auto value : saved) savedNames_.insert(graphs.forward.valueName(value));
  for (const auto& node : graphs.backward.nodes) backwardNames_.insert(node.name);
  findReaders();
  findLayers();
  for (std::size_t input = 0; input < whole.inputs(); ++input) placeInput(input);
  for (auto value = border; value < whole.count(); ++value) placeOfBackward(value);
  nameModules();
}

Fate PlanState::fate(const std::string& name) const {
  return savedNames_.contains(name) ? Fate::saved : backwardNames_.contains(name) ? Fate::recomputed : Fate::unused;
}

std::string PlanState::policy(std::size_t value) const {
  const auto found = forward.named(whole.graph().valueName(value));
  return std::string(found ? forward.policy(*found) : whole.policy(value));
}

void PlanState::findReaders() {
  readers.resize(whole.count());
  isResult.resize(whole.count());
  for (auto reader = whole.inputs(); reader < whole.count(); ++reader)
    fx::forEachValue(whole.node(reader)->call, [&](std::size_t value) { readers[value].push_back(reader); });
  for (std::size_t i = 0; i < std::min(graphs.results, whole.graph().outputs.size()); ++i)
    fx::forEachValue(whole.graph().outputs[i].value, [&](std::size_t value) { isResult[value] = 1; });
}

void PlanState::findLayers() {
  places.resize(whole.count());
  groups = jobs::equalLayers(whole.graph(), border - whole.inputs());
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.layers < b.layers; });
  for (std::size_t group = 0; group < groups.size(); ++group) {
    firstLayer_.push_back(layers.size());
    for (const auto& nodes : groups[group].layers) {
      const auto number = layers.size() - firstLayer_.back();
      for (std::size_t i = 0; i < nodes.size(); ++i)
        places[whole.inputs() + nodes[i]] = {layers.size(), fmt::format("{:06}", i)};
      layers.push_back({group, number, nodes.size(), 0, {}});
    }
  }
}

/// An input is in the layer that alone reads it in the forward.
void PlanState::placeInput(std::size_t input) {
  const auto& reading = readers[input];
  if (reading.empty() || reading.front() >= border) return;
  const auto& first = places[reading.front()];
  const bool isOfOneLayer = std::all_of(reading.begin(), reading.end(),
                                        [&](std::size_t r) { return r >= border || places[r].layer == first.layer; });
  if (!first.layer || !isOfOneLayer) return;
  std::size_t position = 0, count = 0;
  fx::forEachValue(whole.node(reading.front())->call,
                   [&](std::size_t value) { (value == input ? position : count) = ++count; });
  places[input] = {first.layer, fmt::format("{}.{}", first.slot, position)};
}

/// What the backward computes of one layer's values alone belongs to that layer: 1/n of a norm, a weight transposed.
/// Gradients depend on more.
void PlanState::placeOfBackward(std::size_t value) {
  LayerPlace place;
  bool isOfOneLayer = true;
  fx::forEachValue(whole.node(value)->call, [&](std::size_t operand) {
    isOfOneLayer &= places[operand].layer && (!place.layer || place.layer == places[operand].layer);
    place.layer = places[operand].layer;
    place.slot += (place.slot.empty() ? "" : ",") + places[operand].slot;
  });
  constexpr std::size_t longest = 200;  // slots are made of slots
  if (!isOfOneLayer || !place.layer || place.slot.size() > longest) return;
  place.slot += fmt::format(":{}", whole.target(value));
  if (whole.node(value)->call.is(Kind::item))
    place.slot += fmt::format("[{}]", whole.node(value)->call.items[1].integer);
  if (const auto before = slotCounts_[fmt::format("{} {}", *place.layer, place.slot)]++; before > 0)
    place.slot += fmt::format("#{}", before);
  places[value] = std::move(place);
}

/// A layer's module is what the names of the parameters and buffers that it alone reads begin with, up to a dot.
void PlanState::nameModules() {
  std::vector<std::optional<std::string>> starts(layers.size());
  for (std::size_t i = 0; i < graphs.forward.inputs.size(); ++i) {
    const auto& source = graphs.sources[i];
    const auto found = whole.named(graphs.forward.inputs[i].name);
    if (!found || !places[*found].layer || !source || source->kind == jobs::InputSource::Kind::input) continue;
    auto& start = starts[*places[*found].layer];
    const auto name = jobs::plainName(source->name);
    start = start ? commonStart(*start, name) : name;
  }
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (const auto dot = starts[i].value_or("").rfind('.'); dot != std::string::npos)
      layers[i].module = starts[i]->substr(0, dot);
}

}  // namespace retrograd

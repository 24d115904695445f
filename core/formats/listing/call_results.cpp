#include "core/formats/listing/call_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <utility>

#include "core/formats/jobs/dynamo_ops.h"

namespace retrograd::jobs {

using Kind = fx::Expression::Kind;

CallResults::CallResults(const fx::Graph& graph) : graph_(graph) {
  std::unordered_set<std::size_t> bases;
  for (const auto& node : graph.nodes)
    if (const auto base = baseOf(node)) bases.insert(*base);
  std::vector<std::pair<std::size_t, std::uint32_t>> inner;
  std::unordered_map<std::size_t, std::vector<std::string>> names;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto base = baseOf(graph.nodes[i]);
    if (!base) continue;
    const auto value = graph.inputs.size() + i;
    const auto tuple = tuples_.find(*base);
    if (bases.contains(value)) {
      tuples_.emplace(value, tuple == tuples_.end() ? *base : tuple->second);
    } else if (tuple != tuples_.end()) {
      inner.emplace_back(tuple->second, static_cast<std::uint32_t>(i));
    } else {
      addResult(*base, i, names[*base]);
    }
  }
  for (const auto& [call, node] : inner) results_[call].push_back(node);
}

void CallResults::addResult(std::size_t base, std::size_t node, std::vector<std::string>& names) {
  constexpr std::int64_t most = 4096;
  const auto& key = graph_.nodes[node].call.items[1];
  auto index = key.integer;
  if (key.is(Kind::string)) {
    const auto known = std::find(names.begin(), names.end(), key.text);
    index = known - names.begin();
    if (known == names.end()) names.push_back(key.text);
  }
  if (index < 0 || index > most) return;
  const auto position = static_cast<std::size_t>(index);
  auto& results = results_[base];
  if (results.size() <= position) results.resize(position + 1, fx::noIndex);
  if (results[position] == fx::noIndex) results[position] = static_cast<std::uint32_t>(node);
  positions_.emplace(graph_.inputs.size() + node, position);
}

std::optional<std::size_t> CallResults::position(std::size_t value) const {
  const auto found = positions_.find(value);
  return found == positions_.end() ? std::nullopt : std::optional(found->second);
}

/// The call of several results that a node takes an item of; nothing where it takes none.
std::optional<std::size_t> CallResults::baseOf(const fx::Node& node) const {
  const auto& call = node.call;
  if (!call.is(Kind::item) || !call.items[0].is(Kind::value) ||
      (!call.items[1].is(Kind::integer) && !call.items[1].is(Kind::string)))
    return std::nullopt;
  const auto base = call.items[0].valueIndex();
  return base < graph_.inputs.size() || graph_.valueType(base) != fx::noIndex ? std::nullopt : std::optional(base);
}

const std::vector<std::uint32_t>* CallResults::of(std::size_t value) const {
  const auto found = results_.find(value);
  return found == results_.end() ? nullptr : &found->second;
}

bool CallResults::isInTuple(std::size_t value) const {
  if (value < graph_.inputs.size()) return false;
  const auto base = baseOf(graph_.nodes[value - graph_.inputs.size()]);
  return tuples_.contains(value) || (base && tuples_.contains(*base));
}

using Kind = fx::Expression::Kind;

bool isOpCall(const fx::Expression& call) {
  return call.is(Kind::call) && call.items[0].is(Kind::path) && call.items[0].text.starts_with(opsPrefix);
}

CallTarget targetOf(const fx::Expression& call) {
  CallTarget target;
  std::string space = "python", name;
  std::size_t first = call.is(Kind::call) ? 1 : 0;
  if (call.is(Kind::call) && call.items[0].is(Kind::path)) {
    const auto& path = call.items[0].text;
    const auto dot = path.rfind('.');
    name = dot == std::string::npos ? path : path.substr(dot + 1);
    if (dot != std::string::npos) space = path.substr(0, dot);
  } else if (call.is(Kind::call) && call.items[0].is(Kind::attribute)) {
    space = "Tensor";
    name = call.items[0].text;
    target.operands.push_back(&call.items[0].items[0]);
  } else {
    const bool isOperator = call.is(Kind::binary) || call.is(Kind::unary) || call.is(Kind::inPlace);
    name = call.is(Kind::item) ? "getitem" : isOperator ? operatorName(call.text) : "expression";
    first = 0;
  }
  for (auto i = first; i < call.items.size(); ++i) target.operands.push_back(&call.items[i]);
  if (isOpCall(call)) {
    target.op = call.items[0].text;
    return target;
  }
  for (auto* text : {&space, &name})
    for (auto& c : *text)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  target.op = fmt::format("{}{}.{}.default", opsPrefix, space, name);
  return target;
}

}  // namespace retrograd::jobs

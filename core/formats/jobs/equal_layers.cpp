#include "core/formats/jobs/equal_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace retrograd::jobs {
namespace {

using Kind = fx::Expression::Kind;
/// What makes nodes equal, as a number; nodes of layers that were found have numbers of their own.
using Keys = std::vector<std::size_t>;

constexpr std::size_t leastLength = 4;   ///< shorter sequences are parts of an op: `split` with its items, a mask
constexpr std::size_t mostPeriods = 64;  ///< distances that are tried
constexpr std::size_t mostGroups = 8;

std::string textOf(const fx::Graph& graph, const fx::Node& node) {
  std::string text;
  if (node.call.is(Kind::call) && node.call.items[0].is(Kind::path)) text = node.call.items[0].text;
  if (node.call.is(Kind::item) && node.call.items[1].is(Kind::integer))
    text = fmt::format("[{}]", node.call.items[1].integer);
  if (node.source != fx::noIndex)
    text += fmt::format("|{}:{}", graph.sources[node.source].file, graph.sources[node.source].line);
  if (node.type != fx::noIndex) text += "|" + graph.types[node.type].text;
  return text;
}

/// Arithmetic of sizes. Untyped nodes are tuples, whose items follow.
bool isNumber(const fx::Graph& graph, const fx::Node& node) {
  return node.type != fx::noIndex && graph.types[node.type].kind == fx::Type::Kind::number;
}

std::vector<std::size_t> nodesToCompare(const fx::Graph& graph, std::size_t count) {
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < std::min(count, graph.nodes.size()); ++i)
    if (!isNumber(graph, graph.nodes[i])) nodes.push_back(i);
  return nodes;
}

Keys keysOf(const fx::Graph& graph, const std::vector<std::size_t>& nodes) {
  std::unordered_map<std::string, std::size_t> numbers;
  Keys keys;
  for (const auto node : nodes)
    keys.push_back(numbers.try_emplace(textOf(graph, graph.nodes[node]), numbers.size()).first->second);
  return keys;
}

/// Distances from a node to the next equal one, the most frequent first.
std::vector<std::size_t> periodsOf(const Keys& keys) {
  std::unordered_map<std::size_t, std::size_t> last, counts;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto [before, isFirst] = last.try_emplace(keys[i], i);
    if (!isFirst && i - before->second >= leastLength) ++counts[i - before->second];
    before->second = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return std::pair(b.second, a.first) < std::pair(a.second, b.first); });
  std::vector<std::size_t> periods;
  for (std::size_t i = 0; i < std::min(sorted.size(), mostPeriods); ++i) periods.push_back(sorted[i].first);
  return periods;
}

struct Run {
  std::size_t begin = 0, length = 0, covered = 0;  ///< nodes: of one layer, and of all its layers together
};

/// The longest stretch in which each node equals the one `period` behind it.
Run longestRun(const Keys& keys, std::size_t period) {
  Run best;
  std::size_t equal = 0;
  for (std::size_t i = 0; i + period <= keys.size(); ++i) {
    if (i + period < keys.size() && keys[i] == keys[i + period]) {
      ++equal;
      continue;
    }
    const auto covered = (equal + period) / period * period;
    if (equal >= period && covered > best.covered) best = {i - equal, period, covered};
    equal = 0;
  }
  return best;
}

Run bestRun(const Keys& keys) {
  Run best;
  for (const auto period : periodsOf(keys)) {
    const auto run = longestRun(keys, period);
    if (run.covered > best.covered || (run.covered > 0 && run.covered == best.covered && run.length < best.length))
      best = run;
  }
  return best;
}

/// All places of the run's first layer: another layer may lie between two of them.
std::vector<std::size_t> placesOf(const Keys& keys, const Run& run) {
  std::vector<std::size_t> places;
  const auto first = keys.begin() + run.begin;
  for (std::size_t i = 0; i + run.length <= keys.size();) {
    const bool isEqual = std::equal(first, first + static_cast<std::ptrdiff_t>(run.length), keys.begin() + i);
    if (isEqual) places.push_back(i);
    i += isEqual ? run.length : 1;
  }
  return places;
}

bool readsInput(const fx::Graph& graph, const std::vector<std::size_t>& nodes) {
  bool reads = false;
  for (const auto node : nodes)
    fx::forEachValue(graph.nodes[node].call, [&](std::size_t value) { reads |= value < graph.inputs.size(); });
  return reads;
}

}  // namespace

std::vector<LayerGroup> equalLayers(const fx::Graph& graph, std::size_t count) {
  const auto nodes = nodesToCompare(graph, count);
  auto keys = keysOf(graph, nodes);
  std::vector<LayerGroup> groups;
  auto unique = keys.size();
  for (std::size_t tried = 0; tried < mostGroups; ++tried) {
    const auto run = bestRun(keys);
    if (run.covered == 0) break;
    LayerGroup group;
    for (const auto place : placesOf(keys, run)) {
      auto& layer = group.layers.emplace_back();
      for (auto i = place; i < place + run.length; ++i) layer.push_back(nodes[i]), keys[i] = unique++;
    }
    if (std::all_of(group.layers.begin(), group.layers.end(),
                    [&](const auto& layer) { return readsInput(graph, layer); }))
      groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace retrograd::jobs

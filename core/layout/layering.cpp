#include "core/layout/layering.h"

#include <algorithm>

namespace retrograd::layout {
namespace {

constexpr std::size_t mostPassages = 200'000;  ///< beyond them, edges run straight under what is between
constexpr std::int32_t exchangeSlots = 3'000;  ///< up to here neighbours are exchanged too
constexpr int sweeps = 8, sweepsOfLarge = 4;
constexpr std::int32_t largeSlots = 20'000;

std::vector<std::int32_t> longestPath(const LayerGraph& graph) {
  const std::size_t n = graph.nodes;
  std::vector<std::vector<std::int32_t>> in(n), out(n);
  for (const auto& edge : graph.edges) {
    in[edge.to].push_back(edge.from);
    out[edge.from].push_back(edge.to);
  }
  const auto first = graph.topPort ? std::size_t(1) : std::size_t(0);
  const auto last = graph.bottomPort ? n - 1 : n;
  std::vector<std::int32_t> row(n, 0);
  for (auto i = first; i < last; ++i) {
    row[i] = graph.topPort ? 1 : 0;
    for (auto before : in[i]) row[i] = std::max(row[i], row[before] + 1);
    // What hangs on nothing is where it is in the order, not all in the first row.
    if (in[i].empty() && out[i].empty() && i > first) row[i] = row[i - 1];
  }
  for (auto i = last; i-- > first;) {
    const auto inner = std::count_if(in[i].begin(), in[i].end(), [&](auto b) { return !graph.topPort || b != 0; });
    if (out[i].empty() || inner >= std::ssize(out[i])) continue;
    std::int32_t latest = INT32_MAX;
    for (auto after : out[i])
      if (!graph.bottomPort || after != graph.nodes - 1) latest = std::min(latest, row[after] - 1);
    if (latest != INT32_MAX) row[i] = std::max(row[i], latest);
  }
  if (graph.bottomPort) {
    std::int32_t deepest = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) deepest = std::max(deepest, row[i]);
    row[n - 1] = deepest + 1;
  }
  return row;
}

/// Adds the passages and the neighbours; `order` of rows is left to the caller.
Layering withPassages(const LayerGraph& graph, std::vector<std::int32_t> row) {
  Layering layering;
  layering.nodes = graph.nodes;
  layering.row = std::move(row);
  layering.chainBegin.push_back(0);
  std::size_t passages = 0;
  for (const auto& edge : graph.edges) {
    const auto from = layering.row[edge.from], to = layering.row[edge.to];
    layering.chain.push_back(edge.from);
    const std::size_t between = std::max(0, to - from - 1);
    if (passages + between <= mostPassages) {
      passages += between;
      for (auto r = from + 1; r < to; ++r) {
        layering.chain.push_back(layering.slots());
        layering.row.push_back(r);
      }
    }
    layering.chain.push_back(edge.to);
    layering.chainBegin.push_back(static_cast<std::uint32_t>(layering.chain.size()));
  }
  const std::size_t slots = layering.slots();
  layering.above.resize(slots);
  layering.below.resize(slots);
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const auto path = layering.path(e);
    for (std::size_t k = 1; k < path.size(); ++k) {
      const auto a = path[k - 1], b = path[k];
      if (layering.row[b] != layering.row[a] + 1) continue;
      layering.below[a].push_back(b);
      layering.above[b].push_back(a);
    }
  }
  return layering;
}

std::vector<std::int32_t> positionsOf(const Layering& layering) {
  std::vector<std::int32_t> position(layering.slots(), 0);
  for (const auto& row : layering.rows)
    for (std::size_t i = 0; i < row.size(); ++i) position[row[i]] = static_cast<std::int32_t>(i);
  return position;
}

/// Crossings between two neighbouring rows: inversions, counted with a binary indexed tree (Barth, Juenger and Mutzel
/// 2002).
std::int64_t crossingsBelow(const Layering& layering, std::size_t row, const std::vector<std::int32_t>& position) {
  if (row + 1 >= layering.rows.size()) return 0;
  const auto width = layering.rows[row + 1].size();
  std::vector<std::int64_t> tree(width + 1, 0);
  std::int64_t crossings = 0, seen = 0;
  std::vector<std::int32_t> ends;
  for (auto slot : layering.rows[row]) {
    ends.clear();
    for (auto below : layering.below[slot]) ends.push_back(position[below]);
    std::sort(ends.begin(), ends.end());
    for (auto end : ends) {
      std::int64_t notRight = 0;
      for (std::size_t k = end + 1; k > 0; k -= k & (~k + 1)) notRight += tree[k];
      crossings += seen - notRight;
    }
    for (auto end : ends)
      for (std::size_t k = end + 1; k <= width; k += k & (~k + 1)) ++tree[k];
    seen += std::ssize(ends);
  }
  return crossings;
}

std::int64_t allCrossings(const Layering& layering, const std::vector<std::int32_t>& position) {
  std::int64_t sum = 0;
  for (std::size_t r = 0; r < layering.rows.size(); ++r) sum += crossingsBelow(layering, r, position);
  return sum;
}

/// Sorts one row by the mean place of its neighbours; what has none keeps its place.
void sortRow(Layering& layering, std::size_t r, bool byAbove, std::vector<std::int32_t>& position) {
  auto& row = layering.rows[r];
  std::vector<std::pair<double, std::int32_t>> keys;
  keys.reserve(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto& near = (byAbove ? layering.above : layering.below)[row[i]];
    double mean = static_cast<double>(i);
    if (!near.empty()) {
      mean = 0;
      for (auto slot : near) mean += position[slot];
      mean /= static_cast<double>(near.size());
    }
    keys.emplace_back(mean, row[i]);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = keys[i].second;
    position[row[i]] = static_cast<std::int32_t>(i);
  }
}

/// Crossings between the edges of two slots when `left` is left of `right`.
std::int64_t pairCrossings(const std::vector<std::int32_t>& left, const std::vector<std::int32_t>& right,
                           const std::vector<std::int32_t>& position) {
  std::int64_t count = 0;
  for (auto a : left)
    for (auto b : right) count += position[a] > position[b];
  return count;
}

bool exchangeNeighbours(Layering& layering, std::vector<std::int32_t>& position) {
  bool changed = false;
  for (auto& row : layering.rows)
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const std::size_t a = row[i], b = row[i + 1];
      const auto now = pairCrossings(layering.above[a], layering.above[b], position) +
                       pairCrossings(layering.below[a], layering.below[b], position);
      const auto then = pairCrossings(layering.above[b], layering.above[a], position) +
                        pairCrossings(layering.below[b], layering.below[a], position);
      if (then >= now) continue;
      std::swap(row[i], row[i + 1]);
      std::swap(position[a], position[b]);
      changed = true;
    }
  return changed;
}

void orderRows(Layering& layering, const Progress& progress) {
  auto position = positionsOf(layering);
  auto best = layering.rows;
  auto fewest = allCrossings(layering, position);
  const int rounds = layering.slots() > largeSlots ? sweepsOfLarge : sweeps;
  for (int round = 0; round < rounds && fewest > 0; ++round) {
    progress.check();
    const bool down = round % 2 == 0;
    for (std::size_t k = 1; k < layering.rows.size(); ++k)
      sortRow(layering, down ? k : layering.rows.size() - 1 - k, down, position);
    if (layering.slots() <= exchangeSlots)
      for (int i = 0; i < 6 && exchangeNeighbours(layering, position); ++i) progress.check();
    const auto crossings = allCrossings(layering, position);
    if (crossings >= fewest) continue;
    fewest = crossings;
    best = layering.rows;
  }
  layering.rows = std::move(best);
}

void fillRows(Layering& layering) {
  std::int32_t deepest = -1;
  for (auto r : layering.row) deepest = std::max(deepest, r);
  layering.rows.assign(deepest + 1, {});
  for (std::int32_t slot = 0; slot < layering.slots(); ++slot) layering.rows[layering.row[slot]].push_back(slot);
}

}  // namespace

LayerQuality quality(const Layering& layering) {
  LayerQuality result;
  result.crossings = allCrossings(layering, positionsOf(layering));
  for (std::size_t e = 0; e + 1 < layering.chainBegin.size(); ++e) {
    const auto path = layering.path(e);
    result.span += layering.row[path.back()] - layering.row[path.front()];
    ++result.edges;
  }
  return result;
}

Layering layer(const LayerGraph& graph, const Progress& progress) {
  auto layering = withPassages(graph, longestPath(graph));
  fillRows(layering);
  orderRows(layering, progress);
  return layering;
}

Layering layeringFrom(const LayerGraph& graph, std::vector<std::int32_t> rows, const std::vector<float>& x,
                      const std::vector<std::vector<float>>& passages) {
  auto layering = withPassages(graph, std::move(rows));
  std::vector<float> place(x);
  place.resize(layering.slots());
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const auto path = layering.path(e);
    const auto from = place[path.front()], to = place[path.back()];
    for (std::size_t k = 1; k + 1 < path.size(); ++k) {
      const auto share = static_cast<float>(k) / static_cast<float>(path.size() - 1);
      place[path[k]] = k - 1 < passages[e].size() ? passages[e][k - 1] : from + (to - from) * share;
    }
  }
  fillRows(layering);
  for (auto& row : layering.rows)
    std::stable_sort(row.begin(), row.end(), [&](auto a, auto b) { return place[a] < place[b]; });
  return layering;
}

}  // namespace retrograd::layout

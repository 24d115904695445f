#include "core/layout/ways.h"

#include <algorithm>
#include <unordered_set>

namespace retrograd::layout {
namespace {

void sortUnique(std::vector<std::int32_t>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

/// The ops that are met from `starts` on, by tree node; `follow(op, visit)` calls visit for each next one.
template <class Follow>
std::vector<bool> metFrom(const GraphTree& tree, const std::vector<std::int32_t>& starts, const Follow& follow) {
  std::vector<bool> met(tree.size(), false);
  std::vector<std::int32_t> next;
  const auto visit = [&](std::int32_t op) {
    if (op < 0 || met[op]) return;
    met[op] = true;
    next.push_back(op);
  };
  for (auto op : starts) visit(op);
  while (!next.empty()) {
    const auto op = next.back();
    next.pop_back();
    follow(op, visit);
  }
  return met;
}

}  // namespace

LineIndex::LineIndex(const Scene& scene) : scene_(scene) {
  const auto& tree = *scene.tree;
  for (const auto& [group, range] : scene.flowEdges) {
    const auto flows = tree.flows(group);
    for (auto i = range.first; i < range.second; ++i) {
      const auto& line = scene.edges[i];
      const auto& flow = flows[line.flow];
      lines_.emplace(
          Key{group, flow.from, flow.to, static_cast<std::uint8_t>(line.lane), static_cast<std::uint8_t>(line.kind)},
          i);
    }
  }
  // Across the lanes: by the boxes at the ends.
  for (auto i : scene.crossEdges) {
    const auto& line = scene.edges[i];
    if (line.kind == EdgeKind::saved)
      lines_.emplace(Key{-1, line.from, line.to, 0, static_cast<std::uint8_t>(EdgeKind::saved)}, i);
  }
}

std::vector<std::int32_t> LineIndex::linesOf(const OpEdge& edge) const {
  const auto& tree = *scene_.tree;
  std::vector<std::int32_t> found;
  const bool saved = edge.kind == EdgeKind::saved;
  const auto lane = static_cast<std::uint8_t>(tree.node(edge.from).lane), kind = static_cast<std::uint8_t>(edge.kind);
  auto a = saved ? edge.from : std::min(edge.from, edge.to), b = saved ? edge.to : std::max(edge.from, edge.to);
  const auto isOpen = [&](std::int32_t group) { return group >= 0 && scene_.open[group]; };
  while (tree.node(a).parent != tree.node(b).parent) {
    const auto depthA = tree.node(a).depth, depthB = tree.node(b).depth;
    if (depthA >= depthB) {
      if (!saved && isOpen(tree.node(a).parent))
        find({tree.node(a).parent, tree.node(a).ordinal, bottomPort, lane, kind}, found);
      a = tree.node(a).parent;
    }
    if (depthB >= depthA) {
      if (!saved && isOpen(tree.node(b).parent))
        find({tree.node(b).parent, topPort, tree.node(b).ordinal, lane, kind}, found);
      b = tree.node(b).parent;
    }
  }
  if (!saved) {
    if (isOpen(tree.node(a).parent))
      find({tree.node(a).parent, tree.node(a).ordinal, tree.node(b).ordinal, lane, kind}, found);
    return found;
  }
  // An open operation has no frame around a single op: then the line ends at the op.
  const auto end = [&](std::int32_t node, std::int32_t op, Lane side) {
    return scene_.box(node, side) >= 0 ? scene_.box(node, side) : scene_.shownBox(op, side);
  };
  find({-1, end(a, edge.from, Lane::forward), end(b, edge.to, Lane::backward), 0, kind}, found);
  return found;
}

std::vector<std::int64_t> LineIndex::bytes(const Progress& progress) const {
  const auto& tree = *scene_.tree;
  std::vector<std::int64_t> bytes(scene_.edges.size(), 0);
  std::unordered_set<std::uint64_t> counted;  // line and value
  std::size_t done = 0;
  for (const auto& edge : tree.edges()) {
    if (++done % 4096 == 0) progress.check();
    if (!edge.value || !tree.document().isTensor(edge.value)) continue;
    const auto size = tree.document().meta(edge.value).bytes();
    for (auto i : linesOf(edge))
      if (counted.insert(static_cast<std::uint64_t>(i) << 32 | static_cast<std::uint32_t>(edge.value.index)).second)
        bytes[i] += size;
  }
  return bytes;
}

Reach waysBetween(const Scene& scene, const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to) {
  const auto& tree = *scene.tree;
  const auto ahead = metFrom(tree, from, [&](std::int32_t op, const auto& visit) {
    for (const auto& edge : tree.edgesFrom(op)) visit(edge.to);
  });
  const auto behind = metFrom(tree, to, [&](std::int32_t op, const auto& visit) {
    for (auto i : tree.edgesTo(op)) visit(tree.edges()[i].from);
  });
  const auto isOnWay = [&](std::int32_t op) { return ahead[op] && behind[op]; };
  Reach reach;
  const LineIndex lines(scene);
  for (const auto& edge : tree.edges())
    if (isOnWay(edge.from) && isOnWay(edge.to))
      lines.forEachLine(edge, [&](std::int32_t i) { reach.edges.push_back(i); });
  for (std::int32_t op = 0; op < tree.size(); ++op)
    if (tree.node(op).kind == TreeNode::Kind::op && isOnWay(op))
      if (const auto box = scene.shownBox(op, tree.node(op).lane); box >= 0) reach.boxes.push_back(box);
  sortUnique(reach.edges);
  sortUnique(reach.boxes);
  return reach;
}

}  // namespace retrograd::layout

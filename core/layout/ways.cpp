#include "core/layout/ways.h"

#include <algorithm>
#include <unordered_set>

namespace retrograd::layout {
namespace {

/// The boxes at the ends of the line that a saved value runs along. An open operation has no frame around a single op:
/// then the line ends at the op.
std::pair<std::int32_t, std::int32_t> acrossEnds(const Scene& scene, const OpEdge& edge) {
  const auto [a, b] = scene.tree->meeting(edge.from, edge.to, [](auto...) {});
  const auto end = [&](std::int32_t node, std::int32_t op, Lane lane) {
    return scene.box(node, lane) >= 0 ? scene.box(node, lane) : scene.shownBox(op, lane);
  };
  return {end(a, edge.from, Lane::forward), end(b, edge.to, Lane::backward)};
}

class Tracer {
 public:
  Tracer(const Scene& scene, Reach& reach) : scene_(scene), tree_(*scene.tree), reach_(reach) {}

  void add(const OpEdge& edge) {
    const auto lane = tree_.node(edge.from).lane;
    if (edge.kind == EdgeKind::saved) return saved(edge);
    tree_.forEachPart(edge.from, edge.to, [&](std::int32_t group, std::int32_t from, std::int32_t to) {
      flow(group, from, to, lane, edge.kind);
    });
  }

 private:
  void flow(std::int32_t group, std::int32_t from, std::int32_t to, Lane lane, EdgeKind kind) {
    if (group < 0) return;
    const auto range = scene_.flowEdges.find(group);
    if (range == scene_.flowEdges.end()) return;
    const auto flows = tree_.flows(group);
    for (auto i = range->second.first; i < range->second.second; ++i) {
      const auto& edge = scene_.edges[i];
      const auto& at = flows[edge.flow];
      if (at.from == from && at.to == to && edge.lane == lane && edge.kind == kind) reach_.edges.push_back(i);
    }
  }

  void saved(const OpEdge& edge) {
    const auto [from, to] = acrossEnds(scene_, edge);
    const auto edgeAt = [&](std::int32_t i) -> const SceneEdge& { return scene_.edges[i]; };
    const auto& cross = scene_.crossEdges;
    auto it = std::lower_bound(cross.begin(), cross.end(), from,
                               [&](std::int32_t i, std::int32_t wanted) { return edgeAt(i).from < wanted; });
    for (; it != cross.end() && edgeAt(*it).from == from; ++it)
      if (edgeAt(*it).kind == EdgeKind::saved && edgeAt(*it).to == to) reach_.edges.push_back(*it);
  }

  const Scene& scene_;
  const GraphTree& tree_;
  Reach& reach_;
};

void sortUnique(std::vector<std::int32_t>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

Reach reachOf(const Scene& scene, std::int32_t box, std::size_t most) {
  Reach reach;
  const auto& tree = *scene.tree;
  const auto node = scene.boxes[box].node;
  const auto lane = scene.boxes[box].lane;
  Tracer tracer(scene, reach);
  std::size_t seen = 0;
  const auto follow = [&](const OpEdge& edge, std::int32_t other) {
    if (seen++ >= most) return;
    tracer.add(edge);
    const auto end = scene.shownBox(other, tree.node(other).lane);
    if (end >= 0 && end != box) reach.boxes.push_back(end);
  };
  for (auto op = node; op < tree.node(node).end && seen < most; ++op) {
    if (tree.node(op).kind != TreeNode::Kind::op || tree.node(op).lane != lane) continue;
    for (const auto& edge : tree.edgesFrom(op))
      if (!tree.within(edge.to, node) || tree.node(edge.to).lane != lane) follow(edge, edge.to);
    for (auto i : tree.edgesTo(op)) {
      const auto& edge = tree.edges()[i];
      if (!tree.within(edge.from, node) || tree.node(edge.from).lane != lane) follow(edge, edge.from);
    }
  }
  sortUnique(reach.edges);
  sortUnique(reach.boxes);
  return reach;
}

namespace {

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
  const auto kind = static_cast<std::uint8_t>(edge.kind);
  if (edge.kind == EdgeKind::saved) {
    const auto [from, to] = acrossEnds(scene_, edge);
    find({-1, from, to, 0, kind}, found);
    return found;
  }
  const auto lane = static_cast<std::uint8_t>(tree.node(edge.from).lane);
  tree.forEachPart(edge.from, edge.to, [&](std::int32_t group, std::int32_t from, std::int32_t to) {
    if (group >= 0 && scene_.open[group]) find({group, from, to, lane, kind}, found);
  });
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

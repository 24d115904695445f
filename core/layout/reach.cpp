#include "core/layout/reach.h"

#include <algorithm>
#include <unordered_set>

namespace retrograd::layout {
namespace {

class Tracer {
 public:
  Tracer(const Scene& scene, Reach& reach) : scene_(scene), tree_(*scene.tree), reach_(reach) {}

  void add(const OpEdge& edge) {
    const auto lane = tree_.node(edge.from).lane;
    if (edge.kind == EdgeKind::saved) return saved(edge);
    auto a = std::min(edge.from, edge.to), b = std::max(edge.from, edge.to);
    while (tree_.node(a).parent != tree_.node(b).parent) {
      const auto depthA = tree_.node(a).depth, depthB = tree_.node(b).depth;
      if (depthA >= depthB) {
        flow(tree_.node(a).parent, tree_.node(a).ordinal, bottomPort, lane, edge.kind);
        a = tree_.node(a).parent;
      }
      if (depthB >= depthA) {
        flow(tree_.node(b).parent, topPort, tree_.node(b).ordinal, lane, edge.kind);
        b = tree_.node(b).parent;
      }
    }
    flow(tree_.node(a).parent, tree_.node(a).ordinal, tree_.node(b).ordinal, lane, edge.kind);
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
    auto a = edge.from, b = edge.to;
    while (tree_.node(a).parent != tree_.node(b).parent) {
      const auto depthA = tree_.node(a).depth, depthB = tree_.node(b).depth;
      if (depthA >= depthB) a = tree_.node(a).parent;
      if (depthB >= depthA) b = tree_.node(b).parent;
    }
    // An open operation has no frame around a single op: then the line ends at the op.
    const auto end = [&](std::int32_t node, std::int32_t op, Lane lane) {
      return scene_.box(node, lane) >= 0 ? scene_.box(node, lane) : scene_.shownBox(op, lane);
    };
    const auto from = end(a, edge.from, Lane::forward), to = end(b, edge.to, Lane::backward);
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

}  // namespace retrograd::layout

#include "views/content/node_stages.h"

#include <QStringList>
#include <algorithm>
#include <set>

#include "views/text/format.h"

namespace retrograd::views {

void NodeStages::Range::add(const Range& other) {
  if (other.first < 0) return;
  first = first < 0 ? other.first : std::min(first, other.first);
  last = std::max(last, other.last);
}

NodeStages::NodeStages(const layout::GraphTree& tree, const StageCut& cut)
    : tree_(tree), ranges_(static_cast<std::size_t>(tree.size())) {
  for (auto i = tree.size() - 1; i >= 0; --i) {
    const auto& node = tree.node(i);
    auto& ranges = ranges_[i];
    if (node.kind == layout::TreeNode::Kind::op) {
      const int stage = cut.stageOf(node.op);
      ranges[node.lane].add({stage, stage});
    }
    if (node.parent < 0) continue;
    for (auto lane : layout::bothLanes) ranges_[node.parent][lane].add(ranges[lane]);
  }
}

int NodeStages::only(std::int32_t node, layout::Lane lane) const {
  const auto& all = range(node, lane);
  return all.first == all.last ? all.first : -1;
}

QString NodeStages::text(std::int32_t node, layout::Lane lane) const {
  const auto& all = range(node, lane);
  if (all.first < 0) return {};
  return all.first == all.last ? tr("stage %1").arg(all.first) : tr("stages %1 to %2").arg(all.first).arg(all.last);
}

QString NodeStages::edgeText(const layout::Scene& scene, std::int32_t edge) const {
  if (scene_ != &scene) {
    scene_ = &scene;
    edgeTexts_.clear();
  }
  const auto [it, isNew] = edgeTexts_.try_emplace(edge);
  if (isNew) it->second = makeEdgeText(scene, scene.edges[edge]);
  return it->second;
}

QString NodeStages::makeEdgeText(const layout::Scene& scene, const layout::SceneEdge& edge) const {
  if (edge.from < 0 || edge.to < 0 || edge.kind == layout::EdgeKind::saved || edge.kind == layout::EdgeKind::origin)
    return {};
  const auto& upper = scene.boxes[static_cast<std::size_t>(edge.from)];
  const auto& lower = scene.boxes[static_cast<std::size_t>(edge.to)];
  const int above = only(upper.node, upper.lane), below = only(lower.node, lower.lane);
  if (above < 0 || below < 0 || above == below) return {};
  const auto bytesFrom = [&](std::int32_t from, std::int32_t to) {
    std::set<ValueId> values;
    std::int64_t bytes = 0;
    for (auto i = from; i < tree_.node(from).end; ++i) {
      if (tree_.node(i).kind != layout::TreeNode::Kind::op || tree_.node(i).lane != edge.lane) continue;
      for (const auto& one : tree_.edgesFrom(i))
        if (one.kind == edge.kind && tree_.within(one.to, to) && values.insert(one.value).second &&
            tree_.document().isTensor(one.value))
          bytes += tree_.document().meta(one.value).bytes();
    }
    return bytes;
  };
  // Gradients go against the direction of the points, mostly.
  QStringList texts;
  if (const auto bytes = bytesFrom(upper.node, lower.node); bytes > 0)
    texts << tr("%1 \u25b8 %2: %3").arg(above).arg(below).arg(bytesText(bytes));
  if (const auto bytes = bytesFrom(lower.node, upper.node); bytes > 0)
    texts << tr("%1 \u25b8 %2: %3").arg(below).arg(above).arg(bytesText(bytes));
  return texts.join(QStringLiteral("  "));
}

}  // namespace retrograd::views

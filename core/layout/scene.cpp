#include "core/layout/scene.h"

#include <algorithm>

#include "core/base/module_path.h"

namespace retrograd::layout {
namespace {

constexpr float laneGap = 120;  ///< between the lanes: the room of saved edges and their figures

class SceneBuilder {
 public:
  SceneBuilder(Shaper& shaper, const Folds& open, const Progress& progress)
      : tree_(*shaper.tree()), progress_(progress) {
    root_ = shaper.shape(0, open, progress);
    scene_.tree = shaper.tree();
    scene_.open = open;
    scene_.boxOf.assign(tree_.size(), {-1, -1});
    scene_.axis = root_->width + laneGap / 2;
  }

  Scene run() {
    inside(0, *root_, {0, 0});
    savedEdges(0);
    std::sort(scene_.crossEdges.begin(), scene_.crossEdges.end(),
              [&](auto a, auto b) { return scene_.edges[a].from < scene_.edges[b].from; });
    bounds();
    return std::move(scene_);
  }

 private:
  Point mirrored(Point p) const { return {2 * scene_.axis - p.x, p.y}; }
  Rect mirrored(Rect r) const { return {2 * scene_.axis - r.x - r.width, r.y, r.width, r.height}; }

  void addBox(std::int32_t node, Lane lane, bool open, Rect rect) {
    scene_.boxOf[node][lane] = static_cast<std::int32_t>(scene_.boxes.size());
    scene_.boxes.push_back({node, lane, open, lane == Lane::backward ? mirrored(rect) : rect});
  }

  void inside(std::int32_t group, const Shape& shape, Point corner) {
    if ((++groups_ & 0xff) == 0) progress_.check();
    for (auto child = group + 1; child < tree_.node(group).end; child = tree_.next(child)) {
      const auto& node = tree_.node(child);
      auto room = shape.places[node.ordinal];
      room.x += corner.x;
      room.y += corner.y;
      const auto inner = shape.children[node.ordinal].get();
      for (auto lane : {Lane::forward, Lane::backward}) {
        if (node.ops[lane] == 0) continue;
        if (inner) {
          // A single op needs no frame around it, even where the other lane has several.
          if (node.kind != TreeNode::Kind::operation || node.ops[lane] > 1) addBox(child, lane, true, room);
        } else {
          const auto width = std::min(node.width[lane], room.width);
          addBox(child, lane, false, {room.x + (room.width - width) / 2, room.y, width, room.height});
        }
      }
      if (inner) inside(child, *inner, {room.x, room.y});
    }
    flowEdges(group, shape, corner);
  }

  std::int32_t childAt(std::int32_t group, std::int32_t ordinal) {
    if (childrenOf_ != group) {
      children_.clear();
      for (auto child = group + 1; child < tree_.node(group).end; child = tree_.next(child)) children_.push_back(child);
      childrenOf_ = group;
    }
    return children_[ordinal];
  }

  void flowEdges(std::int32_t group, const Shape& shape, Point corner) {
    const bool operation = tree_.node(group).kind == TreeNode::Kind::operation;
    const auto flows = tree_.flows(group);
    const auto first = static_cast<std::int32_t>(scene_.edges.size());
    for (const auto& route : shape.routes) {
      const auto& flow = flows[route.flow];
      const auto from = flow.from == topPort ? -1 : childAt(group, flow.from);
      const auto to = flow.to == bottomPort ? -1 : childAt(group, flow.to);
      const auto put = [&](Lane lane, EdgeKind kind, std::uint32_t count, bool upwards, std::int32_t source,
                           std::int32_t target) {
        if (count == 0) return;
        SceneEdge edge;
        edge.kind = kind;
        edge.lane = lane;
        edge.from = source < 0 ? -1 : scene_.box(source, lane);
        edge.to = target < 0 ? -1 : scene_.box(target, lane);
        // The arrow is at the box that is reached at last, not at frames on the way.
        const auto reached = upwards ? edge.from : edge.to;
        const bool arrow = reached >= 0 && !scene_.boxes[reached].open;
        edge.arrowAtBegin = arrow && upwards;
        edge.arrowAtEnd = arrow && !upwards;
        edge.group = group;
        edge.flow = route.flow;
        edge.count = count;
        edge.begin = static_cast<std::uint32_t>(scene_.points.size());
        edge.points = route.count;
        for (std::uint32_t i = 0; i < route.count; ++i) {
          auto p = shape.points[route.begin + i];
          p.x += corner.x;
          p.y += corner.y;
          scene_.points.push_back(lane == Lane::backward ? mirrored(p) : p);
        }
        scene_.edges.push_back(edge);
      };
      const bool second = tree_.ladder();
      if (route.lane == Lane::forward) put(Lane::forward, EdgeKind::data, flow.data, false, from, to);
      if (!second) {
        put(Lane::forward, EdgeKind::gradient, flow.gradient, false, from, to);
        put(Lane::forward, EdgeKind::accumulation, flow.accumulation, false, from, to);
        continue;
      }
      // Within an operation a gradient goes from the earlier op to the later; between rungs from the later rung to the
      // earlier.
      const bool inner = operation && from >= 0 && to >= 0;
      put(Lane::backward, EdgeKind::gradient, flow.gradient, !inner, from, to);
      put(Lane::backward, EdgeKind::accumulation, flow.accumulation, !inner, from, to);
      put(Lane::backward, EdgeKind::gradient, flow.downward, false, from, to);
    }
    scene_.flowEdges[group] = {first, static_cast<std::int32_t>(scene_.edges.size())};
  }

  /// Straight across, between the lanes: from the forward box to the backward box of those who keep and use.
  void across(EdgeKind kind, std::int32_t from, std::int32_t to, std::int32_t group, std::int32_t flow,
              std::uint32_t count, std::int64_t bytes) {
    if (from < 0 || to < 0) return;
    const auto& a = scene_.boxes[from];
    const auto& b = scene_.boxes[to];
    const auto level = [](const SceneBox& box, const SceneBox& other) {
      if (!box.open) return box.rect.centre().y;
      return std::clamp(other.rect.centre().y, box.rect.y + frame::header / 2, box.rect.bottom() - frame::header / 2);
    };
    SceneEdge edge;
    edge.kind = kind;
    edge.from = from;
    edge.to = to;
    edge.group = group;
    edge.flow = flow;
    edge.count = count;
    edge.bytes = bytes;
    edge.arrowAtEnd = kind == EdgeKind::saved;
    edge.arrowAtBegin = kind == EdgeKind::origin;
    edge.begin = static_cast<std::uint32_t>(scene_.points.size());
    edge.points = 2;
    scene_.points.push_back({a.rect.right(), level(a, b)});
    scene_.points.push_back({b.rect.x, level(b, a)});
    scene_.crossEdges.push_back(static_cast<std::int32_t>(scene_.edges.size()));
    scene_.edges.push_back(edge);
  }

  /// The box of a child; of an open operation without a frame in this lane, its only op's.
  std::int32_t boxOrOnly(std::int32_t child, Lane lane) const {
    const auto& node = tree_.node(child);
    if (const auto box = scene_.box(child, lane); box >= 0 || node.kind != TreeNode::Kind::operation) return box;
    return node.ops[lane] == 1 ? scene_.box(lane == Lane::forward ? child + 1 : node.end - 1, lane) : -1;
  }

  void savedEdges(std::int32_t group) {
    if (!tree_.ladder()) return;
    const auto flows = tree_.savedFlows(group);
    for (std::size_t i = 0; i < flows.size(); ++i)
      across(EdgeKind::saved, boxOrOnly(childAt(group, flows[i].from), Lane::forward),
             boxOrOnly(childAt(group, flows[i].to), Lane::backward), group, static_cast<std::int32_t>(i),
             flows[i].count, flows[i].bytes);
    for (auto child = group + 1; child < tree_.node(group).end; child = tree_.next(child)) {
      const auto forward = scene_.box(child, Lane::forward), backward = scene_.box(child, Lane::backward);
      const auto some = forward >= 0 ? forward : backward;
      if (some < 0) continue;
      if (scene_.boxes[some].open) {
        savedEdges(child);
        continue;
      }
      across(EdgeKind::origin, forward, backward, group, -1, 1, 0);
      std::uint32_t count = 0;
      for (auto node = child; node < tree_.node(child).end; ++node)
        for (const auto& flow : tree_.savedFlows(node)) count += flow.count;
      if (count > 0) across(EdgeKind::saved, forward, backward, child, -1, count, tree_.node(child).acrossBytes);
    }
  }

  void bounds() {
    auto& b = scene_.bounds;
    if (scene_.boxes.empty()) return;
    b = scene_.boxes.front().rect;
    for (const auto& box : scene_.boxes) {
      const auto right = std::max(b.right(), box.rect.right()), bottom = std::max(b.bottom(), box.rect.bottom());
      b.x = std::min(b.x, box.rect.x);
      b.y = std::min(b.y, box.rect.y);
      b.width = right - b.x;
      b.height = bottom - b.y;
    }
    for (const auto& p : scene_.points) {
      const auto bottom = std::max(b.bottom(), p.y);
      b.y = std::min(b.y, p.y);
      b.height = bottom - b.y;
    }
  }

  const GraphTree& tree_;
  const Progress& progress_;
  std::shared_ptr<const Shape> root_;
  Scene scene_;
  std::int32_t childrenOf_ = -1;
  std::vector<std::int32_t> children_;
  std::size_t groups_ = 0;
};

}  // namespace

std::int32_t Scene::shownBox(std::int32_t node, Lane lane) const {
  for (; node >= 0; node = tree->node(node).parent)
    if (const auto shown = box(node, lane); shown >= 0) return shown;
  return -1;
}

std::size_t Scene::bytes() const {
  return boxes.capacity() * sizeof(SceneBox) + edges.capacity() * sizeof(SceneEdge) +
         points.capacity() * sizeof(Point) + boxOf.capacity() * sizeof(boxOf[0]) + open.size() / 8;
}

Scene makeScene(Shaper& shaper, const Folds& open, const Progress& progress) {
  return SceneBuilder(shaper, open, progress).run();
}

Folds openingFolds(const GraphTree& tree, std::int32_t most) {
  Folds open(tree.size(), false);
  if (tree.size() == 0) return open;
  open[0] = true;
  std::vector<std::int32_t> level{0};
  auto shown = tree.node(0).childCount;
  while (!level.empty()) {
    std::vector<std::int32_t> next;
    std::int32_t more = 0;
    for (auto group : level)
      for (auto child = group + 1; child < tree.node(group).end; child = tree.next(child))
        if (tree.node(child).kind == TreeNode::Kind::module) {
          next.push_back(child);
          more += tree.node(child).childCount - 1;
        }
    if (shown + more > most) break;
    for (auto group : next) open[group] = true;
    shown += more;
    level = std::move(next);
  }
  return open;
}

bool reveal(const GraphTree& tree, Folds& open, std::int32_t node) {
  bool changed = false;
  for (auto group = tree.node(node).parent; group >= 0; group = tree.node(group).parent) {
    if (open[group] || !tree.canOpen(group)) continue;
    open[group] = true;
    changed = true;
  }
  return changed;
}

bool openModule(const GraphTree& tree, Folds& open, std::string_view path) {
  std::vector<bool> whole(tree.size(), true);  // all below is in the module
  for (auto i = tree.size() - 1; i > 0; --i) {
    const auto& node = tree.node(i);
    const std::size_t at = i, above = node.parent;
    if (node.kind == TreeNode::Kind::op && tree.node(node.parent).kind == TreeNode::Kind::operation) {
      whole[at] = false;  // its operation says
      continue;
    }
    if (node.kind == TreeNode::Kind::op || node.kind == TreeNode::Kind::operation)
      whole[at] = isInModule(tree.document().text(node.module), path);
    if (!whole[at]) whole[above] = false;
  }
  bool any = false;
  for (std::int32_t i = 0; i < tree.size();) {
    if (path.empty() || !whole[i]) {
      ++i;
      continue;
    }
    any = true;
    reveal(tree, open, i);
    if (tree.canOpen(i)) open[i] = true;
    i = tree.node(i).end;
  }
  return any;
}

Folds allOpen(const GraphTree& tree) {
  Folds open(tree.size());
  for (std::int32_t i = 0; i < tree.size(); ++i) open[i] = i == 0 || tree.canOpen(i);
  return open;
}

}  // namespace retrograd::layout

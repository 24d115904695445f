#include "core/layout/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/layout/labels.h"
#include "core/layout/tree_passes.h"

namespace retrograd::layout {
namespace {

constexpr float portWidth = 12;

/// A lane of a group with coordinates, from its own top left corner.
struct Laid {
  float width = 0, height = 0;
  std::vector<Rect> rects;                 ///< by node of the layer graph
  std::vector<std::vector<Point>> routes;  ///< by edge, from above to below
};

/// How far two neighbouring rows are apart: more where edges go far to the side between them.
std::vector<float> gapsBelow(const Layering& layering, const std::vector<float>& x) {
  std::vector<float> gaps(layering.rows.size(), frame::rowGap);
  for (std::size_t slot = 0; slot < x.size(); ++slot)
    for (auto below : layering.below[slot]) {
      auto& gap = gaps[layering.row[slot]];
      gap = std::max(gap, frame::rowGap + std::min(44.f, std::abs(x[slot] - x[below]) * 0.06f));
    }
  return gaps;
}

Laid lay(const Layering& layering, const std::vector<float>& width, const std::vector<float>& height) {
  auto slotWidth = width;
  slotWidth.resize(layering.slots(), frame::passage);
  auto x = placeSlots(layering, slotWidth, frame::columnGap);
  Laid laid;
  float left = std::numeric_limits<float>::max(), right = std::numeric_limits<float>::lowest();
  for (std::size_t i = 0; i < x.size(); ++i) {
    left = std::min(left, x[i] - slotWidth[i] / 2);
    right = std::max(right, x[i] + slotWidth[i] / 2);
  }
  for (auto& value : x) value -= left;
  laid.width = std::max(0.f, right - left);

  const auto gaps = gapsBelow(layering, x);
  std::vector<float> top(layering.rows.size()), bottom(layering.rows.size());
  float y = 0;
  for (std::size_t r = 0; r < layering.rows.size(); ++r) {
    float tallest = 0;
    for (auto slot : layering.rows[r])
      if (!layering.isPassage(slot)) tallest = std::max(tallest, height[slot]);
    top[r] = y;
    bottom[r] = y + tallest;
    laid.height = bottom[r];
    y = bottom[r] + gaps[r];
  }
  laid.rects.resize(layering.nodes);
  for (std::int32_t i = 0; i < layering.nodes; ++i) {
    const auto r = layering.row[i];
    laid.rects[i] = {x[i] - width[i] / 2, (top[r] + bottom[r] - height[i]) / 2, width[i], height[i]};
  }
  for (std::size_t e = 0; e + 1 < layering.chainBegin.size(); ++e) {
    auto& route = laid.routes.emplace_back();
    const auto add = [&](Point p) {
      if (route.empty() || route.back().x != p.x || route.back().y != p.y) route.push_back(p);
    };
    const auto path = layering.path(e);
    for (std::size_t k = 0; k < path.size(); ++k) {
      const auto slot = path[k];
      const auto r = layering.row[slot];
      const bool passage = layering.isPassage(slot);
      // A box lower than its row: the edge leaves the row straight before it bends.
      if (k > 0) add({x[slot], top[r]});
      if (k > 0 && !passage) add({x[slot], laid.rects[slot].y});
      if (k + 1 < path.size() && !passage) add({x[slot], laid.rects[slot].bottom()});
      if (k + 1 < path.size()) add({x[slot], bottom[r]});
    }
  }
  return laid;
}

}  // namespace

std::uint64_t Shaper::key(std::int32_t group, const Folds& open) const {
  auto hash = tree_->node(group).structure;
  for (auto child = group + 1; child < tree_->node(group).end; child = tree_->next(child)) {
    if (tree_->node(child).kind == TreeNode::Kind::op || !open[child] || !tree_->canOpen(child)) continue;
    hash = mix(mix(hash, static_cast<std::uint64_t>(tree_->node(child).ordinal)), key(child, open));
  }
  return hash;
}

std::uint64_t Shaper::layeringKey(std::int32_t group, Lane lane) const {
  return mix(tree_->node(group).structure, static_cast<std::uint64_t>(lane));
}

std::shared_ptr<const Shape> Shaper::shape(std::int32_t group, const Folds& open, const Progress& progress) {
  progress.check();
  const auto wanted = key(group, open);
  if (const auto known = shapes_.find(wanted); known != shapes_.end()) return known->second;
  auto made = tree_->node(group).kind == TreeNode::Kind::operation ? makeOperation(group, progress)
                                                                   : makeModule(group, open, progress);
  shapes_[wanted] = made;
  return made;
}

LayerQuality Shaper::quality() const {
  LayerQuality sum;
  for (const auto& [structure, layering] : layerings_) sum += layout::quality(*layering);
  return sum;
}

LayerQuality Shaper::quality(const Folds& open) const {
  std::unordered_map<const Layering*, LayerQuality> known;
  LayerQuality sum;
  const auto add = [&](auto&& self, std::int32_t group) -> void {
    for (auto lane : {Lane::forward, Lane::backward}) {
      const auto layering = layerings_.find(layeringKey(group, lane));
      if (layering == layerings_.end()) continue;
      const auto [it, isNew] = known.try_emplace(layering->second.get());
      if (isNew) it->second = layout::quality(*layering->second);
      sum += it->second;
    }
    for (auto child = group + 1; child < tree_->node(group).end; child = tree_->next(child))
      if (open[child] && tree_->canOpen(child)) self(self, child);
  };
  if (tree_->size() > 0) add(add, 0);
  return sum;
}

std::shared_ptr<const Layering> Shaper::layeringOf(std::int32_t group, Lane lane, const LayerGraph& graph,
                                                   const Progress& progress) {
  const auto wanted = layeringKey(group, lane);
  if (const auto known = layerings_.find(wanted); known != layerings_.end()) return known->second;
  // Groups are laid out from the inside out, so all before its end is done.
  progress.at(
      fmt::format("{}, {} boxes", group == 0 ? "the whole graph" : boxText(*tree_, group, lane).title, graph.nodes),
      static_cast<double>(tree_->node(group).end) / std::max(1, tree_->size()));
  std::optional<Layering> made;
  if (maker_) made = maker_(graph, progress);
  if (!made) made = layer(graph, progress);
  return layerings_[wanted] = std::make_shared<const Layering>(std::move(*made));
}

std::shared_ptr<const Shape> Shaper::makeModule(std::int32_t group, const Folds& open, const Progress& progress) {
  const auto& tree = *tree_;
  const auto flows = tree.flows(group);
  LayerGraph graph;
  graph.topPort = std::any_of(flows.begin(), flows.end(), [](const Flow& f) { return f.from == topPort; });
  graph.bottomPort = std::any_of(flows.begin(), flows.end(), [](const Flow& f) { return f.to == bottomPort; });
  const auto first = graph.topPort ? 1 : 0;
  const auto children = tree.node(group).childCount;
  graph.nodes = children + first + (graph.bottomPort ? 1 : 0);
  graph.width.assign(graph.nodes, portWidth);
  graph.height.assign(graph.nodes, 0);

  auto shape = std::make_shared<Shape>();
  shape->children.resize(children);
  auto width = graph.width, height = graph.height;
  for (auto child = group + 1, i = first; child < tree.node(group).end; child = tree.next(child), ++i) {
    const auto& node = tree.node(child);
    graph.width[i] = width[i] = std::max(node.width[Lane::forward], node.width[Lane::backward]);
    graph.height[i] = height[i] = node.height;
    if (!open[child] || !tree.canOpen(child)) continue;
    const auto inner = this->shape(child, open, progress);
    width[i] = inner->width;
    height[i] = inner->height;
    shape->children[node.ordinal] = inner;
  }
  for (const auto& flow : flows)
    graph.edges.push_back(
        {flow.from == topPort ? 0 : flow.from + first, flow.to == bottomPort ? graph.nodes - 1 : flow.to + first});

  const auto layering = layeringOf(group, Lane::forward, graph, progress);
  const auto laid = lay(*layering, width, height);
  const auto title = box::titleChar * static_cast<float>(tree.label(group).size() + 10);
  shape->width = std::max(laid.width, title) + 2 * frame::pad;
  const bool root = tree.node(group).kind == TreeNode::Kind::root;
  const auto header = root ? frame::pad : frame::header + frame::pad / 2;
  shape->height = laid.height + header + frame::pad;
  const auto left = (shape->width - laid.width) / 2;
  shape->places.resize(children);
  for (std::int32_t i = 0; i < children; ++i) {
    auto rect = laid.rects[i + first];
    rect.x += left;
    rect.y += header;
    shape->places[i] = rect;
  }
  const auto middle = shape->width / 2;
  shape->topX.fill(graph.topPort ? laid.rects.front().centre().x + left : middle);
  shape->bottomX.fill(graph.bottomPort ? laid.rects.back().centre().x + left : middle);
  for (std::size_t e = 0; e < flows.size(); ++e) {
    Shape::Route route{static_cast<std::int32_t>(e), Lane::forward, static_cast<std::uint32_t>(shape->points.size()),
                       0};
    auto points = laid.routes[e];
    for (auto& p : points) {
      p.x += left;
      p.y += header;
    }
    if (flows[e].from == topPort) points.front().y = 0;
    if (flows[e].to == bottomPort) points.back().y = shape->height;
    // An open child is entered and left where its own flows are.
    const auto enters = flows[e].to != bottomPort ? shape->children[flows[e].to] : nullptr;
    const auto leaves = flows[e].from != topPort ? shape->children[flows[e].from] : nullptr;
    if (leaves) points.front().x = shape->places[flows[e].from].x + leaves->bottomX[Lane::forward];
    if (leaves && points.size() > 2 && points[1].x == laid.rects[flows[e].from + first].centre().x + left)
      points[1].x = points[0].x;
    if (enters) points.back().x = shape->places[flows[e].to].x + enters->topX[Lane::forward];
    if (enters && points.size() > 2 && points[points.size() - 2].x == laid.rects[flows[e].to + first].centre().x + left)
      points[points.size() - 2].x = points.back().x;
    shape->points.insert(shape->points.end(), points.begin(), points.end());
    route.count = static_cast<std::uint32_t>(points.size());
    shape->routes.push_back(route);
  }
  return shape;
}

/// One lane of an operation: its ops, what flows between them and to the ports, and where all of it was laid.
struct Shaper::OperationSide {
  LayerGraph graph;
  std::vector<std::int32_t> flows;
  Laid laid;
  std::int32_t begin = 0, end = 0, first = 0;

  bool inside(std::int32_t ordinal) const { return ordinal >= begin && ordinal < end; }
};

Shaper::OperationSide Shaper::sideOf(std::int32_t group, Lane lane) const {
  const auto& tree = *tree_;
  const auto flows = tree.flows(group);
  const auto& node = tree.node(group);
  OperationSide side;
  auto& graph = side.graph;
  side.begin = lane == Lane::forward ? 0 : node.ops[Lane::forward];
  side.end = side.begin + node.ops[lane];
  // The backward of an operation is laid out downwards like its forward and then turned over.
  const auto entry = lane == Lane::forward ? topPort : bottomPort;
  for (std::size_t e = 0; e < flows.size(); ++e) {
    const bool from = side.inside(flows[e].from), to = side.inside(flows[e].to);
    if (!from && !to) continue;
    side.flows.push_back(static_cast<std::int32_t>(e));
    if (from && to) continue;
    const bool enters = (from ? flows[e].to : flows[e].from) == entry;
    graph.topPort = graph.topPort || enters;
    graph.bottomPort = graph.bottomPort || !enters;
  }
  side.first = graph.topPort ? 1 : 0;
  graph.nodes = node.ops[lane] + side.first + (graph.bottomPort ? 1 : 0);
  graph.width.assign(graph.nodes, portWidth);
  graph.height.assign(graph.nodes, 0);
  for (std::int32_t i = 0; i < node.ops[lane]; ++i) {
    graph.width[i + side.first] = tree.node(group + 1 + side.begin + i).width[lane];
    graph.height[i + side.first] = tree.node(group + 1 + side.begin + i).height;
  }
  for (auto e : side.flows) {
    const auto& flow = flows[e];
    const auto slot = [&](std::int32_t ordinal) { return ordinal - side.begin + side.first; };
    if (side.inside(flow.from) && side.inside(flow.to)) graph.edges.push_back({slot(flow.from), slot(flow.to)});
    else if (const auto inner = slot(side.inside(flow.from) ? flow.from : flow.to);
             (side.inside(flow.from) ? flow.to : flow.from) == entry)
      graph.edges.push_back({0, inner});
    else graph.edges.push_back({inner, graph.nodes - 1});
  }
  return side;
}

/// Puts a lane that was laid out into the shape, whose size is known by now, `content` high below `header`.
void Shaper::place(const OperationSide& side, Lane lane, std::span<const Flow> flows, float header, float content,
                   Shape& shape) {
  const bool turned = lane == Lane::backward;
  const auto left = (shape.width - side.laid.width) / 2, top = header + (content - side.laid.height) / 2;
  const auto move = [&](Point p) { return Point{p.x + left, top + (turned ? side.laid.height - p.y : p.y)}; };
  for (std::int32_t i = 0; i < side.end - side.begin; ++i) {
    const auto& rect = side.laid.rects[i + side.first];
    const auto corner = move({rect.x, turned ? rect.bottom() : rect.y});
    shape.places[side.begin + i] = {corner.x, corner.y, rect.width, rect.height};
  }
  shape.topX[lane] = shape.bottomX[lane] = shape.width / 2;
  if (side.graph.topPort) (turned ? shape.bottomX : shape.topX)[lane] = side.laid.rects.front().centre().x + left;
  if (side.graph.bottomPort) (turned ? shape.topX : shape.bottomX)[lane] = side.laid.rects.back().centre().x + left;
  for (std::size_t k = 0; k < side.flows.size(); ++k) {
    const auto& flow = flows[side.flows[k]];
    auto points = side.laid.routes[k];
    for (auto& p : points) p = move(p);
    // From where the flow begins to where it ends, as other routes go: what was turned over and touches a port runs the
    // other way.
    if (turned && (flow.from == topPort || flow.to == bottomPort)) std::reverse(points.begin(), points.end());
    if (flow.from == topPort) points.front().y = 0;
    if (flow.to == bottomPort) points.back().y = shape.height;
    shape.routes.push_back({side.flows[k], lane, static_cast<std::uint32_t>(shape.points.size()),
                            static_cast<std::uint32_t>(points.size())});
    shape.points.insert(shape.points.end(), points.begin(), points.end());
  }
}

std::shared_ptr<const Shape> Shaper::makeOperation(std::int32_t group, const Progress& progress) {
  const auto& tree = *tree_;
  const auto& node = tree.node(group);
  auto shape = std::make_shared<Shape>();
  shape->places.resize(node.childCount);
  shape->children.resize(node.childCount);
  LaneArray<OperationSide> sides;
  for (auto lane : {Lane::forward, Lane::backward}) {
    auto& side = sides[lane];
    side = sideOf(group, lane);
    const auto& graph = side.graph;
    if (graph.nodes > 0) side.laid = lay(*layeringOf(group, lane, graph, progress), graph.width, graph.height);
    shape->width = std::max(shape->width, side.laid.width);
    shape->height = std::max(shape->height, side.laid.height);
  }
  const auto title =
      box::titleChar *
      static_cast<float>(
          boxText(tree, group, node.ops[Lane::backward] > 0 ? Lane::backward : Lane::forward).title.size() + 6);
  shape->width = std::max(shape->width, title) + 2 * frame::pad;
  const auto header = frame::header + frame::pad / 2;
  const auto content = shape->height;
  shape->height += header + frame::pad;
  for (auto lane : {Lane::forward, Lane::backward})
    place(sides[lane], lane, tree.flows(group), header, content, *shape);
  return shape;
}

}  // namespace retrograd::layout

#pragma once
#include <string_view>

#include "core/layout/shape.h"

namespace retrograd::layout {

/// A box or, where its group is open, the frame around what is in it.
struct SceneBox {
  std::int32_t node = 0;
  Lane lane = Lane::forward;
  bool open = false;
  Rect rect;
};

/// A line between two boxes, or from a box to the border of the frame around it.
struct SceneEdge {
  EdgeKind kind = EdgeKind::data;
  Lane lane = Lane::forward;  ///< of saved edges and origin links: forward, where they begin
  bool arrowAtBegin = false, arrowAtEnd = false;
  std::int32_t from = -1, to = -1;      ///< boxes, in the direction of the points; -1: the frame's border
  std::int32_t group = 0, flow = 0;     ///< tree node and its flow (or saved flow)
  std::uint32_t begin = 0, points = 0;  ///< into Scene::points
  std::uint32_t count = 0;              ///< values
  std::int64_t bytes = 0;               ///< saved edges
};

/// All that is on the canvas, in pixels at scale 1. Boxes come before what is inside them.
struct Scene {
  std::shared_ptr<const GraphTree> tree;
  Folds open;
  std::vector<SceneBox> boxes;
  std::vector<SceneEdge> edges;
  std::vector<Point> points;
  Rect bounds;
  std::unordered_map<std::int32_t, std::pair<std::int32_t, std::int32_t>>
      flowEdges;                               ///< by open group: its edges [first, second)
  std::vector<std::int32_t> crossEdges;        ///< saved edges and origin links, by the box they begin at
  float axis = 0;                              ///< the backward lane mirrors the forward lane at this x
  std::vector<LaneArray<std::int32_t>> boxOf;  ///< by tree node and lane; -1: not on the canvas

  std::int32_t box(std::int32_t node, Lane lane) const { return node >= 0 ? boxOf[node][lane] : -1; }
  /// The box that shows the node: its own, or the closed one that it hides in; -1 where there is none in the lane.
  std::int32_t shownBox(std::int32_t node, Lane lane) const;
  std::span<const Point> path(const SceneEdge& edge) const { return {points.data() + edge.begin, edge.points}; }
  std::size_t bytes() const;
};

/// Lays out what is open and puts it in its places. Throws Error(cancelled).
Scene makeScene(Shaper& shaper, const Folds& open, const Progress& progress = {});

/// What is open at first: the model, and of what is in it, level by level, as much as stays below some `most` boxes.
Folds openingFolds(const GraphTree& tree, std::int32_t most = 60);
/// Opens what is around a node, so that it shows; returns whether that changed anything.
bool reveal(const GraphTree& tree, Folds& open, std::int32_t node);

/// Opens the groups that hold nothing but ops of this module ("h.3"; what is below it included), each call of it, and
/// what is around them, so that one sees what the module consists of. False where no op of the trace is in such a
/// module.
bool openModule(const GraphTree& tree, Folds& open, std::string_view path);
/// Everything open.
Folds allOpen(const GraphTree& tree);

}  // namespace retrograd::layout

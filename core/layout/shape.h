#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "core/layout/graph_tree.h"
#include "core/layout/layering.h"

namespace retrograd::layout {

struct Point {
  float x = 0, y = 0;
};
struct Rect {
  float x = 0, y = 0, width = 0, height = 0;
  float right() const { return x + width; }
  float bottom() const { return y + height; }
  Point centre() const { return {x + width / 2, y + height / 2}; }
};

/// The content of an open group, from its top left corner, in the coordinates of the forward lane; the backward lane
/// is its mirror image. Shared by all groups of equal structure that are open alike.
struct Shape {
  float width = 0, height = 0;
  std::vector<Rect> places;                            ///< by child: the room it has in both lanes
  std::vector<std::shared_ptr<const Shape>> children;  ///< by child; null where it is closed
  LaneArray<float> topX{}, bottomX{};                  ///< where flows enter and leave, by lane
  struct Route {
    std::int32_t flow = 0;  ///< among the group's flows
    Lane lane = Lane::forward;
    std::uint32_t begin = 0, count = 0;
  };
  std::vector<Route> routes;  ///< of a module those of the forward lane only
  std::vector<Point> points;
};

/// Gaps in pixels at scale 1.
namespace frame {
inline constexpr float header = 26, pad = 16, columnGap = 28, rowGap = 26, passage = 6;
}

/// Which groups are open.
using Folds = std::vector<bool>;

/// Another way to find rows and order, tried first; nothing where it does not want to.
using LayerMaker = std::function<std::optional<Layering>(const LayerGraph&, const Progress&)>;

/// Lays out open groups from the inside out. Rows and order depend on a group's structure alone and are found once for
/// all equal groups; opening one moves its siblings and changes nothing else. Not for several threads at once.
class Shaper {
 public:
  explicit Shaper(std::shared_ptr<const GraphTree> tree, LayerMaker maker = {})
      : tree_(std::move(tree)), maker_(std::move(maker)) {}

  const std::shared_ptr<const GraphTree>& tree() const { return tree_; }
  /// The shape of an open group. Throws Error(cancelled).
  std::shared_ptr<const Shape> shape(std::int32_t group, const Folds& open, const Progress& progress = {});
  /// Crossings and spans of all groups that have been laid out so far, each once.
  LayerQuality quality() const;
  /// The same of all groups that are open, equal ones each time; laid out they have to be.
  LayerQuality quality(const Folds& open) const;
  std::size_t layerings() const { return layerings_.size(); }
  std::size_t shapes() const { return shapes_.size(); }

 private:
  std::uint64_t key(std::int32_t group, const Folds& open) const;
  std::uint64_t layeringKey(std::int32_t group, Lane lane) const;
  std::shared_ptr<const Layering> layeringOf(std::int32_t group, Lane lane, const LayerGraph& graph,
                                             const Progress& progress);
  std::shared_ptr<const Shape> makeModule(std::int32_t group, const Folds& open, const Progress& progress);
  std::shared_ptr<const Shape> makeOperation(std::int32_t group, const Progress& progress);
  struct OperationSide;
  OperationSide sideOf(std::int32_t group, Lane lane) const;
  static void place(const OperationSide& side, Lane lane, std::span<const Flow> flows, float header, float content,
                    Shape& shape);

  std::shared_ptr<const GraphTree> tree_;
  LayerMaker maker_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Layering>> layerings_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Shape>> shapes_;
};

}  // namespace retrograd::layout

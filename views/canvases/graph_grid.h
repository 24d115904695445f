#pragma once
#include <QRectF>
#include <vector>

#include "core/layout/scene.h"

namespace retrograd::views {

/// Finds what of a scene is in a rectangle. Made with the scene, off the UI thread.
class GraphGrid {
 public:
  GraphGrid() = default;
  explicit GraphGrid(const layout::Scene& scene);

  /// Indices in ascending order; may hold some that are just outside.
  void boxesIn(const QRectF& area, std::vector<std::int32_t>& found) const { query(boxes_, area, found); }
  void edgesIn(const QRectF& area, std::vector<std::int32_t>& found) const { query(edges_, area, found); }

 private:
  struct Layer {
    std::vector<std::uint32_t> begin;  ///< by cell
    std::vector<std::int32_t> items;
    std::vector<std::int32_t> large;  ///< over so many cells that they are in every answer
    std::size_t count = 0;            ///< of all items
  };
  void fill(Layer& layer, const std::vector<QRectF>& areas) const;
  void query(const Layer& layer, const QRectF& area, std::vector<std::int32_t>& found) const;
  struct Cells {
    int left, top, right, bottom;
  };
  Cells cellsOf(const QRectF& area) const;

  QRectF bounds_;
  double cell_ = 1;
  int columns_ = 0, rows_ = 0;
  Layer boxes_, edges_;
};

/// The rectangle around an edge's points.
QRectF edgeArea(const layout::Scene& scene, const layout::SceneEdge& edge);
inline QRectF toQt(const layout::Rect& r) { return {r.x, r.y, r.width, r.height}; }
inline QPointF toQt(const layout::Point& p) { return {p.x, p.y}; }

}  // namespace retrograd::views

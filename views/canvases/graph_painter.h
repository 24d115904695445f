#pragma once
#include <QCache>
#include <QFont>
#include <QPainter>
#include <QPainterPath>
#include <QStaticText>
#include <memory>
#include <optional>

#include "core/base/enum_array.h"
#include "core/layout/labels.h"
#include "core/layout/ways.h"
#include "views/content/box_filter.h"
#include "views/content/edge_values.h"
#include "views/content/graph_overlay.h"
#include "views/session/selection.h"
#include "views/text/run_numbers.h"
#include "views/theme/graph_style.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// How a graph looks, wherever it is drawn.
struct GraphLook {
  GraphColors colors;
  Colors theme;  ///< of what is marked, as in listings
  QFont title, detail, plain;
  EnumArray<layout::EdgeKind, bool, layout::edgeKindCount> shown{true, true, true, true, false};
  std::shared_ptr<const GraphOverlay> overlay;  ///< null: boxes show their roles
  std::shared_ptr<const BoxFilter> filter;      ///< what it does not let through is pale; null: all passes

  bool isDimmed(const layout::SceneBox& box) const { return filter && !filter->passes(box.node, box.lane); }
};
/// In the light or the dark theme, without an overlay.
GraphLook graphLook(bool dark, bool highContrast = false);

/// The texts of a box, measured once.
struct GraphText {
  QStaticText title, detail, badges;
  bool hasBadges = false;
};
using GraphTexts = QCache<int, GraphText>;  ///< by box

/// The labels of a graph's lines, at a scale at which they can be read.
enum class LineLabel : std::uint8_t {
  bytes,  ///< of the values that run along it
  norms,  ///< the 2-norm of these values together, where a run or a recording has all of them
  none
};
inline constexpr std::array lineLabels{LineLabel::bytes, LineLabel::norms, LineLabel::none};

/// From where a graph is seen, and whose state marks its boxes.
struct GraphLens {
  QPointF origin;  ///< the scene's point in the upper left corner
  double scale = 1;
  QSizeF size;                                ///< of what is painted on
  const Selection* selection = nullptr;       ///< null: nothing is selected
  const ExecutionState* execution = nullptr;  ///< null: no marks of a run
  const layout::Reach* reach = nullptr;
  int current = -1;
  bool hovering = false;
  const EdgeValues* lines = nullptr;    ///< null: only saved tensors have labels, their bytes
  const RunNumbers* numbers = nullptr;  ///< null: no norm is known
  LineLabel label = LineLabel::bytes;
  bool cosmetic = true;  ///< lines have their width whatever the painter's transformation

  QPointF toScreen(const QPointF& p) const { return (p - origin) * scale; }
  QRectF toScreen(const QRectF& r) const { return {toScreen(r.topLeft()), r.size() * scale}; }
};

/// Paints a laid out graph in full detail, piece by piece, on whatever there is to paint on: the canvas, a picture, a
/// page. Everything is placed by the lens, not by the painter's transformation.
class GraphPainter {
 public:
  GraphPainter(const layout::Scene& scene, const GraphLook& look, const GraphLens& lens, GraphTexts& texts)
      : scene_(scene), look_(look), lens_(lens), texts_(&texts) {}

  /// These boxes (those around others first) and edges, and over them the lit ones.
  void all(QPainter& painter, const std::vector<std::int32_t>& boxes, const std::vector<std::int32_t>& edges,
           const Progress& progress = {}) const;
  void frame(QPainter& painter, int box) const;
  /// Titles of those of the boxes that are frames and begin in sight.
  void frameTitles(QPainter& painter, const std::vector<std::int32_t>& boxes) const;
  /// Titles of those that begin above the view: at its top edge, side by side, over what is there.
  void stuckTitles(QPainter& painter, const std::vector<std::int32_t>& boxes) const;
  void closedBox(QPainter& painter, int box) const;
  void edge(QPainter& painter, const layout::SceneEdge& edge, bool lit) const;
  /// The label is moved along its edge where it would cover one of these lines of text.
  void edgeLabel(QPainter& painter, const layout::SceneEdge& edge, bool lit, const std::vector<QRectF>& titles) const;
  std::vector<QPointF> pointsOf(const layout::SceneEdge& edge) const;
  /// The line of an edge as it is drawn.
  QPainterPath path(const layout::SceneEdge& edge) const;
  /// What the lens wants the line to be labelled with; empty where nothing is known, or the line is too small to have a
  /// label.
  QString lineLabel(std::int32_t line, bool lit) const;
  /// Which lane is which, at the top edge, whatever part of it is in sight.
  void lanes(QPainter& painter) const;
  /// What the overlay's colours mean, in lines of at most this width. `corner` is the lower left one. Its size, painted
  /// or not (null painter); empty without an overlay.
  QSizeF legend(QPainter* painter, const QPointF& corner, double width) const;

  const GraphLens& lens() const { return lens_; }

  /// What a box is filled with: its role's colours, under the overlay's.
  GraphColors::Fill fillFor(const layout::SceneBox& box) const;
  /// The one colour of a box that is a few pixels small: of the overlay, else of its role.
  QRgb pixelFor(const layout::SceneBox& box) const;
  Role roleOf(const layout::SceneBox& box) const;
  /// The op that a box represents; invalid for a group of several.
  BoundSymbolId opOf(int box) const { return layout::onlyOp(*scene_.tree, this->box(box).node, this->box(box).lane); }

 private:
  const layout::Scene& scene() const { return scene_; }
  const layout::SceneBox& box(int i) const { return scene_.boxes[i]; }
  QPointF toScreen(const QPointF& p) const { return lens_.toScreen(p); }
  QRectF toScreen(const QRectF& r) const { return lens_.toScreen(r); }
  Relation relationOf(BoundSymbolId op) const {
    return op && lens_.selection ? lens_.selection->relation(op) : Relation::none;
  }
  void marks(QPainter& painter, int box, const QRectF& rect) const;
  /// NaN or infinite where a value has one; nullopt where a value is not known.
  std::optional<double> normOf(std::int32_t line) const;
  void drawLabel(QPainter& painter, const QString& label, const layout::SceneEdge& edge,
                 const std::vector<QPointF>& points, const QColor& color, bool crosses,
                 const std::vector<QRectF>& titles) const;
  /// Where frames have their titles.
  std::vector<QRectF> titleLines(const std::vector<std::int32_t>& boxes) const;
  void boxText(QPainter& painter, int box, const QRectF& rect) const;
  /// The words of a box that is smaller than they are: its title in a size that can be read, as much of it as there is
  /// room for.
  void smallText(QPainter& painter, int box, const QRectF& rect) const;
  QFont frameFont() const;
  /// Where the title of a frame is that begins above the view; nothing for one that begins in it.
  std::optional<QRectF> stuckLine(int box, const QFontMetricsF& metrics) const;
  const GraphText& textFor(int box) const;

  const layout::Scene& scene_;
  const GraphLook& look_;
  const GraphLens& lens_;
  GraphTexts* texts_;
};

}  // namespace retrograd::views

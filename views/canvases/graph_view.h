#pragma once
#include <QImage>
#include <QLineF>
#include <QTimer>
#include <QVector>
#include <QWidget>
#include <functional>
#include <memory>

#include "core/base/enum_array.h"
#include "views/canvases/graph_grid.h"
#include "views/canvases/graph_painter.h"
#include "views/session/view_context.h"
#include "views/text/line_pattern.h"
#include "views/widgets/graph_busy.h"

namespace retrograd::views {

/// A laid out graph with what is needed to draw it; made on the layout worker and never changed.
struct GraphPicture {
  layout::Scene scene;
  GraphGrid grid;
  EdgeValues lines;
};

/// The ops of a graph that a search found, in the order of its tree, and how many of them each node has below it, by
/// lane.
struct GraphFinds {
  std::vector<std::int32_t> ops;  ///< tree nodes
  std::vector<layout::LaneArray<std::int32_t>> below;
};

/// One trace as a graph that folds by module: the joint as a ladder, forward down on the left, backward up on the
/// right, each backward op in the row of its origin. An own canvas: what is outside is not looked at, detail depends on
/// the scale, 100,000 boxes pan at some 10 ms a frame.
///
/// The keyboard's box (`current`) is this view's own; making an op's box current selects the op for all views.
class GraphView : public QWidget {
  Q_OBJECT

 public:
  GraphView(ViewContext context, QWidget* parent = nullptr);
  ~GraphView() override;

  TraceKind kind() const { return kind_; }
  void setKind(TraceKind kind);
  bool edgesShown(layout::EdgeKind kind) const { return look_.shown[kind]; }
  void showEdges(layout::EdgeKind kind, bool on);

  Overlay overlay() const { return overlayKind_; }
  void setOverlay(Overlay overlay);
  const GraphOverlay* overlayShown() const { return look_.overlay.get(); }
  /// How the graph looks in the light or the dark theme, all of it: no filter makes anything pale.
  GraphLook look(bool dark) const;
  LineLabel lineLabel() const { return label_; }
  void setLineLabel(LineLabel label);
  /// The label of an edge of the scene as it is drawn at the present scale; empty where it has none.
  QString labelOf(std::int32_t edge) const;
  /// None of its ops passes the filter: it is drawn pale.
  bool isDimmed(int box) const { return look_.isDimmed(this->box(box)); }

  /// Null until the first layout is there.
  const std::shared_ptr<const GraphPicture>& picture() const { return picture_; }
  bool busy() const { return busy_; }
  const GraphBusy& busyPanel() const { return *busyPanel_; }
  /// Stops the layout that runs. Where it waited for dot, the graph is laid out without, and dot is no longer asked for
  /// large groups of this document; else what was there stays.
  void cancelLayout();
  /// Another program instead of `retrograd-layout`, for what is laid out from now on.
  void setLayoutHelper(const std::string& program);

  /// The box that the keyboard is on; -1 where there is none.
  int current() const { return current_; }
  /// The op that a box represents; invalid for a group of several.
  BoundSymbolId opOf(int box) const;
  QString textOf(int box) const;  ///< as a screen reader hears it
  /// The box that shows the op, or the closed group that hides it; -1 where this trace does not have it.
  int boxOf(BoundSymbolId op) const;
  QRectF boxRect(int box) const;  ///< in widget coordinates
  int boxAt(const QPointF& position) const;
  /// The edge of the scene that is drawn there, in full detail and over no box; -1 where there is none.
  int lineAt(const QPointF& position) const;
  double scale() const { return scale_; }
  /// Where the small map is; empty while the whole graph is in sight.
  QRectF minimapRect() const;
  void showMinimap(bool on);

  /// Opens or closes a group; siblings move, the group stays where it is on the screen.
  void setOpen(std::int32_t node, bool open);
  void setAllOpen(bool open);
  /// Opens what hides the op and goes there.
  void reveal(BoundSymbolId op);

  /// Marks all ops whose line has the text, in place, and groups with how many are in them; goes to the next one.
  /// Another search with the same `key` only goes on.
  void find(const QString& key, const LinePattern& pattern, bool forward);
  void clearFind();
  /// How many of the ops in a box the search found.
  int foundIn(int box) const;

  /// Lights all ways along values from these ops to those, until Esc or another document; waysLit() says when they are
  /// found.
  void lightWays(std::vector<BoundSymbolId> from, std::vector<BoundSymbolId> to);
  void clearWays();
  /// The lines and boxes that are lit.
  const layout::Reach& ways() const { return ways_; }

  void zoomToFit();
  void zoomToWidth();
  void zoomTo(const QRectF& area, double mostScale = 1) { goTo(placeFor(area, mostScale)); }
  void zoomToSelection();
  /// The module that the current box is in, in both lanes; where that is what one sees already, the module around
  /// it.
  void zoomToModule();
  void zoomToFullSize() { zoomBy(1 / scale_, {width() / 2.0, height() / 2.0}); }
  void zoomBy(double factor, const QPointF& around);
  void panBy(const QPointF& pixels);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);
  void breakpointRequested(retrograd::BoundSymbolId op);
  void activated();
  /// The context menu of the current box, to which others may add.
  void menuAboutToShow(QMenu* menu);
  void overlayChanged();
  void lineLabelChanged();
  /// lightWays() has ended: how many boxes are on the ways; 0: there is none.
  void waysLit(int boxes);
  /// A search has ended: how many it found, and which of them (from 1) is current; 0 where there is none.
  void findDone(int count, int current);
  /// A layout is there, or will not come: see picture() and busy().
  void layoutChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct LayoutBench;
  enum class Detail { full, batched, pixels };

  void documentChanged();
  void selectionChanged();
  void executionChanged();
  void updateStyle();
  void updateFilter();
  void makeOverlay();
  /// Lays out again with these folds, on the layout worker; `anchor` (a tree node) keeps its place on the screen.
  void requestLayout(layout::Folds open, std::int32_t anchor = -1, BoundSymbolId reveal = {});
  void setBusy(bool busy);
  /// After a layout that was cancelled before the first was there.
  void layOutAgain() {
    if (!busy_) requestLayout({});
  }
  void layoutDone(std::shared_ptr<const GraphPicture> picture, layout::Reach ways, std::int32_t anchor,
                  BoundSymbolId reveal);
  const layout::Scene& scene() const { return picture_->scene; }
  const layout::SceneBox& box(int i) const { return scene().boxes[i]; }

  /// Where one looks from.
  struct Place {
    QPointF origin;
    double scale;
  };
  /// From where all of an area is seen, as close as that goes.
  Place placeFor(const QRectF& area, double mostScale) const;
  void goTo(const Place& place);

  QPointF toScreen(const QPointF& p) const { return (p - origin_) * scale_; }
  QPointF toScene(const QPointF& p) const { return p / scale_ + origin_; }
  QRectF toScreen(const QRectF& r) const { return {toScreen(r.topLeft()), r.size() * scale_}; }
  QRectF visibleArea() const { return {origin_, QSizeF(size()) / scale_}; }
  void moved();
  void keepInSight();
  void ensureVisible(int box, bool centre);
  void setCurrent(int box, bool select = true);
  void goToFind(bool forward);
  void requestWays();
  /// Of these ops those that the scene's trace has.
  static layout::Reach waysIn(const layout::Scene& scene, const std::vector<BoundSymbolId>& from,
                              const std::vector<BoundSymbolId>& to);
  void paintFinds(QPainter& painter) const;
  /// The boxes below the small map.
  int minimapCovers() const;
  /// It is drawn faintly then, while the pointer is elsewhere.
  bool minimapFades() const { return !pointsAtMinimap_ && !onMinimap_ && minimapCovers() > 0; }
  /// Once the view rests: to the corner where it covers the fewest boxes. It stays where no corner is better.
  void placeMinimap();
  void setHovered(int box);
  void updateReach();
  void announce();
  int neighbour(int key) const;
  bool isToggleAt(int box, const QPointF& position) const;
  /// Nothing but what a drag holds on to: no box, or a frame below its title.
  bool isGround(int box, const QPointF& position) const;
  /// Selects the value that runs along an edge at its maker; where that is the current box, the edge's other end.
  void followLine(int line);
  /// The op of a box, or of those in it the first that makes or takes the value.
  BoundSymbolId opAlong(int box, ValueId value, bool makes) const;
  /// What runs along an edge, for people.
  QString lineText(int line) const;

  Detail detail() const { return scale_ >= 0.45 ? Detail::full : scale_ >= 0.1 ? Detail::batched : Detail::pixels; }
  /// The facts about the view that the painter has to know.
  GraphLens lens() const;
  void paintBatched(QPainter& painter, const GraphPainter& paint);
  void paintFills(QPainter& painter, const GraphPainter& paint) const;
  void paintSmallTitles(QPainter& painter) const;
  using LinesByKind = EnumArray<layout::EdgeKind, QVector<QLineF>, layout::edgeKindCount>;
  /// The wanted ones of the edges in sight, on the screen.
  LinesByKind linesOf(const std::function<bool(std::int32_t)>& isWanted) const;
  void paintPixels(QPainter& painter, const GraphPainter& paint);
  void paintMinimap(QPainter& painter, const GraphPainter& paint);
  void fillMinimap(const QSize& size, const GraphPainter& paint);
  void paintLegend(QPainter& painter, const GraphPainter& paint) const;
  /// Heights of what covers the graph's upper and lower edge: the names of the lanes, the overlay's legend.
  double upperStrip() const;
  double lowerStrip() const;
  void paintHighlights(QPainter& painter) const;
  void centreOnMinimap(const QPointF& position);

  ViewContext context_;
  TraceKind kind_ = TraceKind::joint;
  std::shared_ptr<const OpenDocument> document_;
  std::unique_ptr<Worker> worker_;
  std::shared_ptr<LayoutBench> bench_;  ///< followed on the layout worker only
  std::shared_ptr<const GraphPicture> picture_;
  layout::Folds wanted_;  ///< folds of the newest request
  bool busy_ = false, stale_ = true;
  bool cancelling_ = false;  ///< by the user: a newer request stops an older one too
  QString problem_;
  GraphBusy* busyPanel_ = nullptr;

  QPointF origin_;
  double scale_ = 1;
  bool placed_ = false;  ///< the view has been put somewhere for this document
  bool still_ = true;
  QTimer overlayTimer_;
  QTimer stillTimer_;

  int current_ = -1, hovered_ = -1;
  std::int32_t currentNode_ = -1;  ///< of the current box, to find it after a layout
  layout::Lane currentLane_ = layout::Lane::forward;
  layout::Reach reach_;  ///< of the hovered box, or the current one
  layout::Reach ways_;   ///< of the present picture, lit until they are cleared
  std::vector<BoundSymbolId> waysFrom_, waysTo_;
  std::shared_ptr<const GraphFinds> finds_;
  QString findKey_;
  bool selecting_ = false;
  BoundSymbolId shownExecution_;

  LineLabel label_ = LineLabel::bytes;
  Overlay overlayKind_ = Overlay::role;

  QPointF pressed_;
  QPointF pressedOrigin_;
  int pressedLine_ = -1;  ///< of the present picture
  bool panning_ = false, onMinimap_ = false, pointsAtMinimap_ = false;

  GraphLook look_;
  mutable GraphTexts texts_{4000};
  mutable std::vector<std::int32_t> boxesHere_, edgesHere_;
  bool minimapShown_ = true;
  Qt::Corner minimapCorner_ = Qt::BottomRightCorner;
  QImage pixels_, minimap_;
  std::size_t minimapBoxes_ = 0;  ///< so many boxes are in it
};

/// Lets screen readers know the box under the keyboard; call once before the first window.
void installGraphAccessibility();

}  // namespace retrograd::views

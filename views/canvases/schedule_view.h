#pragma once

#include "views/canvases/scrolled_canvas.h"
#include "views/content/schedule_layout.h"

namespace retrograd::views {

/// A simulated schedule: a row for each rank, time to the right, cells with letter and microbatch, hatched where a rank
/// waits. Ctrl+wheel, + and - zoom, 0 shows all, the wheel moves; arrows go from cell to cell, Up and Down to another
/// rank, Enter leads to the stage.
class ScheduleView : public ScrolledCanvas {
  Q_OBJECT

 public:
  explicit ScheduleView(Theme* theme, QWidget* parent = nullptr);

  void show(ScheduleLayout layout);
  /// Said where there is nothing to draw.
  void setHint(const QString& hint);
  const ScheduleLayout& scheduleLayout() const { return layout_; }
  /// The chosen cell, -1: none.
  int current() const { return current_; }
  void setCurrent(int cell);
  /// In the viewport.
  QRectF cellRect(int cell) const;
  int cellAt(const QPointF& point) const;
  /// Pixels of a unit of time.
  double scale() const { return scale_; }
  void zoomBy(double factor, double x);
  void zoomToAll() { setScale(0); }
  QColor colorOf(ActionKind kind) const;

  QSize sizeHint() const override { return {560, 220}; }

 Q_SIGNALS:
  /// The cell to describe, under the mouse or else chosen; -1: none.
  void told(int cell);
  void activated(int cell);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  static constexpr int rowHeight = 30, rowGap = 6, side = 8;
  int labelWidth() const;
  int axisHeight() const { return fontMetrics().height() + 8; }
  int plotWidth() const { return std::max(1, viewport()->width() - labelWidth() - side); }
  double fitScale() const { return layout_.makespan() > 0 ? plotWidth() / layout_.makespan() : 1; }
  double x(double time) const;
  double time(double x) const;
  int y(int rank) const;
  void setScale(double scale);
  void placeBars();
  void setHovered(int cell);
  void reveal(int cell);
  void paintRank(QPainter& painter, int rank) const;
  void paintCell(QPainter& painter, const ScheduleCell& cell, const QRectF& rect) const;
  void paintFrames(QPainter& painter, int rank) const;
  void paintAxis(QPainter& painter) const;

  ScheduleLayout layout_;
  QString hint_;
  double scale_ = 1;
  bool fits_ = true;  ///< all is shown, whatever the width
  int current_ = -1, hovered_ = -1;
};

}  // namespace retrograd::views

#pragma once
#include <QPixmap>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>

#include "core/questions/memory_timeline.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// Live bytes by use over forward and backward, stacked; the border, the peak and where execution is are marked. A
/// position is an op of the program: what is live right after it ran. Left and Right move by one op, with Ctrl by a
/// tenth, Home, End and P (the peak) jump. The wheel, + and - zoom, 0 shows all; dragging with Shift zooms to a range.
/// At the left is an axis in bytes, below one of the position in the run with the border; the op under the pointer has
/// its number there.
class MemoryView : public QWidget {
  Q_OBJECT

 public:
  MemoryView(Theme* theme, QWidget* parent = nullptr);

  /// Null shows nothing. `forwardSize` is the border; `opAt` gives the op of a position.
  void set(std::shared_ptr<const MemoryTimeline> timeline, std::size_t forwardSize,
           std::function<BoundSymbolId(std::size_t)> opAt);
  /// The memory of another choice of what is saved, drawn as a line over this one; its forward and backward are
  /// stretched to these. Null takes it away.
  void setOther(std::shared_ptr<const MemoryTimeline> timeline, std::size_t forwardSize);
  /// How many ops have run; 0 marks nothing.
  void setExecution(std::size_t position);
  /// The position that is selected, if the selected op runs at all.
  void setCurrent(std::optional<std::size_t> position);
  std::optional<std::size_t> current() const { return current_; }
  /// The position under a point of the widget, and back.
  std::optional<std::size_t> positionAt(const QPointF& point) const;
  /// The positions in sight, from the first to one past the last.
  std::pair<std::size_t, std::size_t> range() const;
  /// What the axis below names in sight: positions in the run, and the steps that they are, "120" for the 120th op.
  std::vector<std::pair<std::size_t, QString>> ticks() const;
  /// "#4832": the op under the pointer, else the selected one, as the axis names it.
  QString cursorText() const;
  /// Shows these positions, at least two.
  void zoomTo(double begin, double end);
  int xOf(std::size_t position) const;
  /// The colour of a use, as in the legend.
  static QColor colorOf(const Colors& colors, MemoryUse use);
  /// What is under its line: the same, softer.
  static QColor fillOf(const Colors& colors, MemoryUse use);

  QSize sizeHint() const override { return {400, 160}; }

 Q_SIGNALS:
  /// The user chose a position: by click or key.
  void picked(std::size_t position);
  /// Space: wants to see what is alive there, in global coordinates.
  void listRequested(std::size_t position, const QPoint& at);
  /// Enter or a double click: wants to go there.
  void activated(std::size_t position);
  /// The mouse is over a position, or no longer over any.
  void hovered(std::optional<std::size_t> position);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  bool empty() const { return !timeline_ || timeline_->liveBytes.empty(); }
  std::size_t count() const { return timeline_->liveBytes.size(); }
  QRect plot() const;
  void pick(std::size_t position);
  /// The axes and the columns of all uses, drawn again when the timeline, the size or the colours changed: a million
  /// ops are not walked each time the mouse moves.
  const QPixmap& stack(const QRect& area);
  void paintStack(QPainter& painter, const QRect& area) const;
  void paintOther(QPainter& painter, const QRect& area) const;
  void paintMarks(QPainter& painter, const QRect& area) const;
  void paintExecution(QPainter& painter, const QRect& area) const;
  void paintAxes(QPainter& painter, const QRect& area) const;
  void paintCursor(QPainter& painter, const QRect& area) const;
  QRect belowAxis(int x, const QString& text, const QRect& area) const;
  double placeOf(double x) const;  ///< a position with its fraction, by x
  double xAt(double place) const;
  void zoomBy(double factor, double around);
  QString idAt(std::size_t position) const;
  QString peakText() const;
  /// The upper end of the axis.
  std::int64_t topBytes() const;
  double yOf(std::int64_t bytes, const QRect& area) const;
  /// Where the peak's label is above the plot, pixels of the widget.
  QRect peakLabel() const;

  Theme* theme_;
  std::shared_ptr<const MemoryTimeline> timeline_, other_;
  std::size_t otherForward_ = 0;
  QPixmap stack_;
  std::function<BoundSymbolId(std::size_t)> opAt_;
  std::size_t forwardSize_ = 0, execution_ = 0;
  std::optional<std::size_t> current_, hover_;
  double begin_ = 0, end_ = 1;               ///< in sight
  std::optional<double> dragFrom_, dragTo_;  ///< places of a range that is being chosen
};

}  // namespace retrograd::views

#pragma once
#include <QWidget>
#include <optional>
#include <utility>

#include "views/theme/theme.h"

class QPainter;

namespace retrograd::views {

/// Bytes over positions (ops of a run, events of a history): an axis in bytes at the left, positions below, a part of
/// which is in sight, and one that is selected. Left and Right move by one position, with Ctrl by a tenth, Home and End
/// jump. The wheel, + and - zoom, 0 shows all; dragging with Shift zooms to a range.
class ZoomedPlot : public QWidget {
  Q_OBJECT

 public:
  /// `headroom`: pixels above the plot, beyond a line of text.
  ZoomedPlot(Theme* theme, int headroom, QWidget* parent);

  /// The position that is selected.
  std::optional<std::size_t> current() const { return current_; }
  /// One that there is not selects nothing.
  void setCurrent(std::optional<std::size_t> position);
  /// The position under a point of the widget, and back.
  std::optional<std::size_t> positionAt(const QPointF& point) const;
  int xOf(std::size_t position) const { return static_cast<int>(xAt(static_cast<double>(position) + 0.5)); }
  /// The positions in sight, from the first to one past the last.
  std::pair<std::size_t, std::size_t> range() const;
  /// Shows these positions, at least two.
  void zoomTo(double begin, double end);

  /// A colour of a line as that of the ground below it.
  static QColor softer(const QColor& color, const QColor& paper);

 Q_SIGNALS:
  /// A person chose a position: by click or key.
  void picked(std::size_t position);

 protected:
  /// How many positions there are; 0 where nothing is shown.
  virtual std::size_t count() const = 0;
  /// The upper end of the axis, at least 1. Asked only where there are positions.
  virtual std::int64_t topBytes() const = 0;
  /// Other positions are in sight.
  virtual void rangeChanged() = 0;
  /// Where keys begin while nothing is selected.
  virtual std::size_t firstByKey() const = 0;

  bool empty() const { return count() == 0; }
  /// All positions are in sight, as for other contents. Calls nobody.
  void resetRange();
  double sightBegin() const { return begin_; }
  bool choosesRange() const { return dragFrom_.has_value(); }
  QRect plot() const;
  double placeOf(double x) const;  ///< a position with its fraction, by x
  double xAt(double place) const;
  double yOf(std::int64_t bytes, const QRect& area) const;
  /// Selects it, as a person does, and brings it into sight.
  void pick(std::size_t position);

  /// How far apart numbers below the axis are: 1, 2, 5, 10..., with room for the last one.
  std::size_t ticksApart() const;
  void paintBytes(QPainter& painter, const QRect& area) const;
  void paintTick(QPainter& painter, const QRect& area, std::size_t position, const QString& text) const;
  /// Below its place on the axis, but whole: near an edge it moves inwards.
  QRect belowAxis(int x, const QString& text, const QRect& area) const;
  void paintUpright(QPainter& painter, const QRect& area, int x, const QColor& color, Qt::PenStyle style,
                    qreal width) const;
  /// A line that is seen on all grounds.
  void paintCurve(QPainter& painter, const QPolygonF& line, Qt::PenStyle style) const;
  /// Next to a mark above the plot, on the side where there is room.
  QRect flagPlace(int x, const QString& text) const;
  void paintFlag(QPainter& painter, const QRect& area, int x, const QString& text, const QColor& color) const;
  /// The range that is being chosen, and the frame of what has the keyboard.
  void paintChoice(QPainter& painter, const QRect& area) const;
  void paintFocus(QPainter& painter) const;

  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

  Theme* theme_;

 private:
  void zoomBy(double factor, double around);

  int headroom_;
  std::optional<std::size_t> current_;
  double begin_ = 0, end_ = 1;               ///< in sight
  std::optional<double> dragFrom_, dragTo_;  ///< places of a range that is being chosen
};

}  // namespace retrograd::views

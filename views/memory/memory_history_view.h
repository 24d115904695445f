#pragma once
#include <QPixmap>
#include <QWidget>
#include <optional>

#include "views/engine/pool_job.h"
#include "views/memory/open_memory.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// What an allocator held over the events of a history: bands stacked, the peak and the request that failed marked, the
/// predicted steps as a dotted line, a second history as a dashed one that is stretched to this. Left and Right move by
/// one event, with Ctrl by a tenth, Home, End, P (the peak) and F (the request that failed) jump. The wheel, + and -
/// zoom, 0 shows all; dragging with Shift zooms to a range. Columns are worked out on the thread pool.
class MemoryHistoryView : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryHistoryView(Theme* theme, QWidget* parent = nullptr);

  void set(const ShownMemory& shown, const ShownMemory& other);
  /// The event that is selected.
  std::optional<std::size_t> current() const { return current_; }
  void setCurrent(std::optional<std::size_t> event);
  /// Shows these events, at least two.
  void zoomTo(double begin, double end);
  std::pair<std::size_t, std::size_t> range() const;
  int xOf(std::size_t event) const;
  std::optional<std::size_t> eventAt(const QPointF& point) const;
  /// The picture is of the range in sight.
  bool busy() const { return columns_.busy(); }
  /// Of a band of the stack; the last one of all others is grey.
  static QColor colorOf(const Theme& theme, const MemoryStack& stack, std::size_t band);

  QSize sizeHint() const override { return {500, 200}; }

 Q_SIGNALS:
  /// A person chose an event: by click or key.
  void picked(std::size_t event);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  using Columns = std::vector<MemoryStack::Column>;

  bool empty() const { return !shown_.stack || shown_.stack->events() == 0; }
  std::size_t count() const { return shown_.stack->events(); }
  QRect plot() const;
  void pick(std::size_t event);
  void zoomBy(double factor, double around);
  /// Works out the columns of the range in sight.
  void askForColumns();
  double eventOf(double x) const;
  double xAt(double event) const;
  double yOf(std::uint64_t bytes, const QRect& area) const;
  std::uint64_t topBytes() const;
  void paintAxes(QPainter& painter, const QRect& area) const;
  void paintStack(QPainter& painter, const QRect& area) const;
  void paintOther(QPainter& painter, const QRect& area) const;
  void paintPredicted(QPainter& painter, const QRect& area) const;
  void paintMarks(QPainter& painter, const QRect& area) const;
  void paintLine(QPainter& painter, const QPolygonF& line, Qt::PenStyle style) const;
  void paintFlag(QPainter& painter, const QRect& area, std::int64_t event, const QString& text,
                 const QColor& color) const;

  Theme* theme_;
  ShownMemory shown_, other_;
  PoolJob columns_;
  Columns drawn_, otherDrawn_;
  double drawnBegin_ = 0, drawnEnd_ = 1;  ///< events that drawn_ is of
  double begin_ = 0, end_ = 1;            ///< in sight
  std::optional<std::size_t> current_;
  std::optional<double> dragFrom_, dragTo_;  ///< events of a range that is being chosen
};

}  // namespace retrograd::views

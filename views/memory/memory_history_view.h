#pragma once
#include "views/engine/pool_job.h"
#include "views/memory/open_memory.h"
#include "views/widgets/zoomed_plot.h"

namespace retrograd::views {

/// What an allocator held over the events of a history: bands stacked, the peak and the request that failed marked, the
/// predicted steps as a dotted line, a second history as a dashed one that is stretched to this. A position is an
/// event. P jumps to the peak, F to the request that failed. Columns are worked out on the thread pool.
class MemoryHistoryView : public ZoomedPlot {
  Q_OBJECT

 public:
  explicit MemoryHistoryView(Theme* theme, QWidget* parent = nullptr);

  void set(const ShownMemory& shown, const ShownMemory& other);
  /// The picture is of the range in sight.
  bool busy() const { return columns_.busy(); }
  /// Of a band of the stack; the last one of all others is grey.
  /// Of a category of memory the same in every chart and file; of other bands one after the other.
  static QColor colorOf(const Theme& theme, const MemoryStack& stack, std::size_t band);
  static QColor colorOf(const Theme& theme, MemoryCategory category);

  QSize sizeHint() const override { return {500, 200}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  std::size_t count() const override { return shown_.stack ? shown_.stack->events() : 0; }
  std::int64_t topBytes() const override;
  void rangeChanged() override { askForColumns(); }
  std::size_t firstByKey() const override;

 private:
  using Columns = std::vector<MemoryStack::Column>;

  /// Works out the columns of the range in sight.
  void askForColumns();
  void paintAxes(QPainter& painter, const QRect& area) const;
  void paintStack(QPainter& painter, const QRect& area) const;
  void paintOther(QPainter& painter, const QRect& area) const;
  void paintPredicted(QPainter& painter, const QRect& area) const;
  void paintMarks(QPainter& painter, const QRect& area) const;

  ShownMemory shown_, other_;
  PoolJob columns_;
  Columns drawn_, otherDrawn_;
  double drawnBegin_ = 0, drawnEnd_ = 1;  ///< events that drawn_ is of
};

}  // namespace retrograd::views

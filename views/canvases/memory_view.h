#pragma once
#include <QPixmap>
#include <functional>
#include <memory>

#include "core/questions/memory_timeline.h"
#include "views/widgets/zoomed_plot.h"

namespace retrograd::views {

/// Live bytes by use over forward and backward, stacked; the border, the peak and the position of execution are marked.
/// A position is an op of the program: what is live right after it ran. P jumps to the peak. Below is an axis of the
/// position in the run with the border; the op under the pointer has its number there.
class MemoryView : public ZoomedPlot {
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
  /// What the axis below names in sight: positions in the run, and the steps that they are, "120" for the 120th op.
  std::vector<std::pair<std::size_t, QString>> ticks() const;
  /// "#4832": the op under the pointer, else the selected one, as the axis names it.
  QString cursorText() const;
  /// The colour of a use, as in the legend.
  static QColor colorOf(const Colors& colors, MemoryUse use) { return colors.memory[use]; }
  /// What is under its line: the same, softer.
  static QColor fillOf(const Colors& colors, MemoryUse use);

  QSize sizeHint() const override { return {400, 160}; }

 Q_SIGNALS:
  /// Space: wants to see what is alive there, in global coordinates.
  void listRequested(std::size_t position, const QPoint& at);
  /// Enter or a double click: wants to go there.
  void activated(std::size_t position);
  /// The mouse is over a position, or no longer over any.
  void hovered(std::optional<std::size_t> position);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  std::size_t count() const override { return timeline_ ? timeline_->liveBytes.size() : 0; }
  std::int64_t topBytes() const override;
  void rangeChanged() override { stack_ = {}; }
  std::size_t firstByKey() const override { return execution_ > 0 ? std::min(execution_, count()) - 1 : 0; }

 private:
  /// The axes and the columns of all uses, drawn again when the timeline, the size or the colours changed: a million
  /// ops are not walked each time the mouse moves.
  const QPixmap& stack(const QRect& area);
  void paintStack(QPainter& painter, const QRect& area) const;
  void paintOther(QPainter& painter, const QRect& area) const;
  void paintMarks(QPainter& painter, const QRect& area) const;
  void paintExecution(QPainter& painter, const QRect& area) const;
  void paintAxes(QPainter& painter, const QRect& area) const;
  void paintCursor(QPainter& painter, const QRect& area) const;
  QString idAt(std::size_t position) const { return QStringLiteral("#%1").arg(opAt_(position).index); }
  QString peakText() const;

  std::shared_ptr<const MemoryTimeline> timeline_, other_;
  std::size_t otherForward_ = 0;
  QPixmap stack_;
  std::function<BoundSymbolId(std::size_t)> opAt_;
  std::size_t forwardSize_ = 0, execution_ = 0;
  std::optional<std::size_t> hover_;
};

}  // namespace retrograd::views

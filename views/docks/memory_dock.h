#pragma once
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>

#include "views/canvases/memory_view.h"
#include "views/docks/panel.h"

namespace retrograd::views {

/// The memory timeline of the open document with its legend: bytes of each use at the op under the mouse, else at the
/// selected one, else at the peak. Choosing a place selects its op for all views. The timeline is made on the worker
/// when the dock first comes into sight. Below it is, once measured, what LibTorch's allocator handed out, with
/// jumps to its peak and to the largest workspace.
class MemoryDock : public Panel {
  Q_OBJECT

 public:
  explicit MemoryDock(ViewContext context, QWidget* parent = nullptr);
  /// "after relu_1 = aten.relu(t3): 12 KiB".
  QString caption() const { return caption_->text(); }
  /// What was measured, or why not.
  QString measured() const { return measured_->text(); }

  /// Draws the memory of a choice that is tried over the present one; null takes it away.
  void showTried(const std::shared_ptr<const MemoryTimeline>& tried, std::size_t forwardSize);
  /// Shown as a button; who owns it calls measure().
  void addMeasure(QAction* action);
  /// Runs the model once on the side, on the worker.
  void measure();

 Q_SIGNALS:
  /// After which op of the run most is live; once for each document that the panel shows.
  void peakKnown(std::optional<std::size_t> position);

 protected:
  void refresh() override;
  void forget() override;

 private:
  QWidget* makeLegend();
  QWidget* makeMeasured();
  QToolButton* makeJump(QWidget* parent, const QString& text, const QString& tip);
  void showMeasured(const AllocatorPeak& peak);
  void forgetMeasured();
  void askForTimeline(const std::shared_ptr<const OpenDocument>& open);
  void selectionChanged();
  /// The largest tensors that are alive at a position and the ops that made them, a line each.
  QString aliveAt(std::size_t position) const;
  void describeAt(std::optional<std::size_t> position);
  void recolor();
  BoundSymbolId opAt(std::size_t position) const;

  MemoryView* view_;
  QLabel* caption_;
  QHBoxLayout* measuredLine_ = nullptr;
  QLabel* measured_ = nullptr;
  QToolButton *toPeak_ = nullptr, *toWorkspace_ = nullptr;
  AllocatorPeak peak_;
  std::array<QLabel*, memoryUseCount> swatches_{};
  std::array<QLabel*, memoryUseCount> figures_{};
  std::shared_ptr<const MemoryTimeline> timeline_;
  std::shared_ptr<const OpenDocument> document_;  ///< that the timeline is of
};

}  // namespace retrograd::views

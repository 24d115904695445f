#pragma once
#include <QLabel>
#include <QWidget>

#include "views/canvases/memory_view.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The memory timeline of the open document with its legend: bytes of each use at the op under the mouse, else at the selected one, else
/// at the peak. Choosing a place selects its op for all views. The timeline is made on the worker when the dock first shows.
class MemoryDock : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryDock(ViewContext context, QWidget* parent = nullptr);
  /// "after relu_1 = aten.relu(t3): 12 KiB".
  QString caption() const { return caption_->text(); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  QWidget* makeLegend();
  void documentChanged();
  void request();
  void selectionChanged();
  void describeAt(std::optional<std::size_t> position);
  void recolor();
  BoundSymbolId opAt(std::size_t position) const;

  ViewContext context_;
  MemoryView* view_;
  QLabel* caption_;
  std::array<QLabel*, memoryUseCount> swatches_{};
  std::array<QLabel*, memoryUseCount> figures_{};
  std::shared_ptr<const MemoryTimeline> timeline_;
  std::shared_ptr<const OpenDocument> document_;  ///< that the timeline is of
};

}  // namespace retrograd::views

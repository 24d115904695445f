#pragma once
#include <QComboBox>
#include <QToolButton>
#include <QWidget>

#include "core/base/enum_array.h"
#include "views/canvases/graph_view.h"

namespace retrograd::views {

/// The graph with its controls: which trace, which edges (the buttons are the legend too), and where to look.
class GraphPane : public QWidget {
  Q_OBJECT

 public:
  GraphPane(ViewContext context, QWidget* parent = nullptr);

  GraphView& view() const { return *view_; }
  /// The text for the title over the pane.
  QString title() const;
  QComboBox& overlayChoice() const { return *overlay_; }
  /// Has the command next to the choice of what boxes show, where that needs a run that is not there.
  void setRunAction(QAction* action) { run_->setDefaultAction(action); }
  QToolButton& edgeButton(layout::EdgeKind kind) const { return *edges_[kind]; }

 Q_SIGNALS:
  void titleChanged();

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* makeControls();
  void updateControls();
  void offerRun();
  QIcon edgeIcon(layout::EdgeKind kind) const;

  ViewContext context_;
  GraphView* view_ = nullptr;
  QComboBox* trace_ = nullptr;
  QComboBox* overlay_ = nullptr;
  QToolButton* run_ = nullptr;
  EnumArray<layout::EdgeKind, QToolButton*, layout::edgeKindCount> edges_{};
  int wholeWidth_ = 0;  ///< of the controls with all their words
};

}  // namespace retrograd::views

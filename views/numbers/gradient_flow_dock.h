#pragma once
#include <QSplitter>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/engine/pool_job.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/numbers/gradient_flow_model.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// Gradient flow: the parameters by layer with the norms of value and gradient and their ratio, as a tree of modules
/// and as a chart of the rows that are closed: one bar for a layer, or one for each parameter of a layer that is open.
class GradientFlowDock : public Panel {
  Q_OBJECT

 public:
  explicit GradientFlowDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void forget() override;
  void leave() override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  QString emptyText() const override {
    return job_.busy() ? QString() : unlessClosed(tr("The model has no parameters"));
  }

 private:
  /// Has the rows of another analysis made off the UI thread.
  void list(const std::shared_ptr<const Analysis>& analysis);
  void measure();
  /// Opens what holds layers, and no layer.
  void expandToLayers(const std::vector<int>& rows);
  void setOpen(const QModelIndex& index, bool isOpen);
  void showBars();
  void markBar();
  void choose(const QModelIndex& index);
  void fitName();
  /// The table below the chart where there is no room for its numbers next to it.
  void arrange();

  GradientFlowModel* model_;
  QTreeView* table_;
  GradientFlowChart* chart_;
  QSplitter* splitter_;
  ColumnFitter* columns_;
  std::shared_ptr<const Analysis> shown_;
  PoolJob job_;               ///< lists the parameters
  std::vector<int> barRows_;  ///< the model's row of each bar
  bool filling_ = false, fitting_ = false, isNameChosen_ = false;
};

}  // namespace retrograd::views

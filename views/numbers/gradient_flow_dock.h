#pragma once
#include <QLabel>
#include <QStandardItemModel>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// Gradient flow: the parameters in the order of the layers with the norms of value and gradient and their ratio, as a chart and as a table.
class GradientFlowDock : public Panel {
  Q_OBJECT

 public:
  explicit GradientFlowDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void forget() override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  QString emptyText() const override { return unlessClosed(tr("No parameter has a gradient")); }

 private:
  void choose(int row);
  void fitName();

  QStandardItemModel* model_;
  QTreeView* table_;
  GradientFlowChart* chart_;
  ColumnFitter* columns_;
  std::vector<ValueId> parameters_;  ///< by row
  bool filling_ = false, fitting_ = false, isNameChosen_ = false;
};

}  // namespace retrograd::views

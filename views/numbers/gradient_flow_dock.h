#pragma once
#include <QLabel>
#include <QSplitter>
#include <QStandardItemModel>
#include <QTreeView>

#include "core/questions/parameter_tree.h"
#include "views/docks/panel.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// Gradient flow: the parameters by layer with the norms of value and gradient and their ratio, as a tree of modules and as a chart of the rows that are
/// closed: one bar for a layer, or one for each parameter of a layer that is open.
class GradientFlowDock : public Panel {
  Q_OBJECT

 public:
  explicit GradientFlowDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void forget() override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  QString emptyText() const override { return unlessClosed(tr("The model has no parameters")); }

 private:
  /// A module or a parameter. The norm of a module is that of all its parameters together.
  struct Row {
    QString path;
    ValueId parameter, gradient;  ///< none for a module; no gradient: frozen, or no output depends on it
    std::vector<std::size_t> parts;
    GradientFlowChart::Bar numbers;
    std::int64_t bad = 0;
    QStandardItem* item = nullptr;  ///< in the first column
  };

  void build();
  std::size_t add(const ParameterTree& tree, const std::vector<ValueId>& gradients, QStandardItem* parent);
  void expandToLayers(const ParameterTree& tree, QStandardItem* parent);
  /// Of the row and of all below it.
  void measure(std::size_t row);
  void showNumbers(const Row& row);
  void showBars();
  QString whyNoNorms() const;
  void markBar();
  void choose(const QModelIndex& index);
  const Row* rowOf(const QModelIndex& index) const;
  void fitName();
  /// The table below the chart where there is no room for its numbers beside it.
  void arrange();

  QStandardItemModel* model_;
  QTreeView* table_;
  GradientFlowChart* chart_;
  QSplitter* splitter_;
  ColumnFitter* columns_;
  std::shared_ptr<const Analysis> shown_;
  std::vector<Row> rows_;             ///< parts before what holds them
  std::vector<std::size_t> barRows_;  ///< of the chart
  bool filling_ = false, fitting_ = false, isNameChosen_ = false;
};

}  // namespace retrograd::views

#pragma once
#include <QComboBox>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/numbers/trace_table_model.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {

/// The ops of a trace as a table with their numbers, sortable by a click on a column's title or Alt+Up and Alt+Down.
class TraceTableDock : public Panel {
  Q_OBJECT

 public:
  explicit TraceTableDock(ViewContext context, QWidget* parent = nullptr);
  QVariantMap saveState() const override;
  void restoreState(const QVariantMap& state) override;

 protected:
  void refresh() override;
  void forget() override;
  QString emptyText() const override { return unlessClosed(tr("There is no forward and backward: see Problems")); }
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* makeChoice();
  TraceKind kind() const { return static_cast<TraceKind>(traces_->currentData().toInt()); }
  void follow();

  TraceTableModel* model_;
  QComboBox* traces_;
  ElidedLabel* hint_ = nullptr;  ///< why there are no numbers
  QTreeView* table_;
  std::shared_ptr<const OpenDocument> shown_;
  TraceKind shownKind_ = TraceKind::joint;
  bool following_ = false;  ///< the current row changes because the selection did
};

}  // namespace retrograd::views

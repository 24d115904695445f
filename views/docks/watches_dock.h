#pragma once
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/values_model.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// Values that stay in sight: state and statistics of each after every stop. Enter or a double click leads to the op
/// that makes one, Delete takes it away. Asks the worker only while nothing runs.
class WatchesDock : public Panel {
  Q_OBJECT

 public:
  explicit WatchesDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void forget() override { model_->expectRows(nullptr, {}); }
  QString emptyText() const override {
    return unlessClosed(tr("Nothing is watched: select a value and choose Value > Watch"));
  }

 private:
  /// A row for each value that is watched, without what it holds.
  void showRows();
  void show(const std::shared_ptr<const ValueReport>& report);

  ValuesModel* model_;
  QTreeView* table_;
  ColumnFitter* columns_;
};

}  // namespace retrograd::views

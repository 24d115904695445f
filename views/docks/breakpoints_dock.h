#pragma once
#include <QLabel>
#include <QLineEdit>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/breakpoints_model.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// The breakpoints and a line to add one (`kind mm if nan`). Enter or a double click leads to one, Space switches it,
/// Delete takes it away; F2, or a double click on its condition, edits that.
class BreakpointsDock : public Panel {
  Q_OBJECT

 public:
  explicit BreakpointsDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void refresh() override;
  void forget() override { model_->set(nullptr, {}); }
  QString emptyText() const override {
    return unlessClosed(tr("No breakpoints: choose an op and press F9, or type one below"));
  }
  void activate(const QModelIndex& row) override;

 private:
  QWidget* makeLine();
  void add();
  void editCurrent();
  void tell(const QString& problem);
  void removeCurrent();

  BreakpointsModel* model_;
  QTreeView* table_;
  ColumnFitter* columns_ = nullptr;
  QLineEdit* words_;
  QLabel* problem_;
};

}  // namespace retrograd::views

#pragma once
#include <QLabel>
#include <QLineEdit>
#include <QTreeView>
#include <QWidget>

#include "views/models/breakpoints_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The breakpoints and a line to add one by words. Enter or a double click leads to one, Space switches it, Delete takes it away.
class BreakpointsDock : public QWidget {
  Q_OBJECT

 public:
  explicit BreakpointsDock(ViewContext context, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  QWidget* makeLine();
  void refresh();
  void add();
  void removeCurrent();

  ViewContext context_;
  BreakpointsModel* model_;
  QTreeView* table_;
  QLineEdit* words_;
  QLabel* problem_;
};

}  // namespace retrograd::views

#pragma once
#include <QTreeView>

#include "views/models/breakpoints_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The breakpoints; Enter or a double click leads to one, Delete takes it away.
class BreakpointsDock : public QTreeView {
  Q_OBJECT

 public:
  explicit BreakpointsDock(ViewContext context, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void refresh();

  ViewContext context_;
  BreakpointsModel* model_;
};

}  // namespace retrograd::views

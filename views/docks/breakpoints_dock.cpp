#include "views/docks/breakpoints_dock.h"

#include <QHeaderView>
#include <QKeyEvent>

#include "views/docks/dock_tree.h"

namespace retrograd::views {

BreakpointsDock::BreakpointsDock(ViewContext context, QWidget* parent)
    : QTreeView(parent), context_(context), model_(new BreakpointsModel(this)) {
  setObjectName(QStringLiteral("breakpoints"));
  setModel(model_);
  prepareTree(*this, tr("Breakpoints"), true);
  setRootIsDecorated(false);
  header()->setStretchLastSection(true);
  header()->resizeSection(0, 100);
  header()->resizeSection(1, 320);
  connect(context_.controller, &DocumentController::documentChanged, this, &BreakpointsDock::refresh);
  connect(context_.execution, &ExecutionState::breakpointsChanged, this, &BreakpointsDock::refresh);
  connect(this, &QTreeView::activated, this, [this](const QModelIndex& index) {
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
}

void BreakpointsDock::refresh() { model_->set(context_.controller->document(), context_.execution->breakpoints()); }

void BreakpointsDock::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Delete) return QTreeView::keyPressEvent(event);
  const int row = currentIndex().row();
  if (const auto op = model_->opAt(row)) context_.controller->toggleBreakpoint(op);
  setCurrentIndex(model_->index(std::min(row, model_->rowCount() - 1), 0));
}

}  // namespace retrograd::views

#include "views/docks/problems_dock.h"

#include <QDockWidget>
#include <QHeaderView>

#include "views/docks/dock_tree.h"

namespace retrograd::views {

ProblemsDock::ProblemsDock(ViewContext context, QWidget* parent) : QTreeView(parent), context_(context), model_(new ProblemsModel(this)) {
  setObjectName(QStringLiteral("problems"));
  setModel(model_);
  prepareTree(*this, tr("Problems"), false);
  setRootIsDecorated(false);
  setWordWrap(true);
  header()->setStretchLastSection(true);
  header()->resizeSection(0, 80);
  header()->resizeSection(1, 200);
  connect(context_.controller, &DocumentController::documentChanged, this,
          [this] { model_->setDocument(context_.controller->document()); });
  connect(context_.execution, &ExecutionState::changed, this, [this] {
    const auto& now = context_.execution->now();
    model_->setRunProblem(now.error, now.failed);
  });
  const auto countInTitle = [this] {
    auto* dock = qobject_cast<QDockWidget*>(parentWidget());
    if (dock) dock->setWindowTitle(model_->rowCount() ? tr("Problems (%1)").arg(model_->rowCount()) : tr("Problems"));
  };
  connect(model_, &QAbstractItemModel::modelReset, this, countInTitle);
  connect(this, &QTreeView::activated, this, [this](const QModelIndex& index) {
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
}

}  // namespace retrograd::views

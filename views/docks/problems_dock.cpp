#include "views/docks/problems_dock.h"

#include <QDockWidget>
#include <QHeaderView>

#include "views/widgets/dock_tree.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {

ProblemsDock::ProblemsDock(ViewContext context, QWidget* parent)
    : Panel(context, "problems", parent), model_(new ProblemsModel(this)) {
  auto* tree = new QTreeView(this);
  tree->setObjectName(QStringLiteral("problems"));
  tree->setModel(model_);
  new SortedRows(*tree);
  prepareTree(*tree, tr("Problems"), false);
  tree->setRootIsDecorated(false);
  tree->setWordWrap(true);
  tree->header()->setStretchLastSection(true);
  tree->header()->resizeSection(0, 80);
  tree->header()->resizeSection(1, 200);
  fillWith(tree);
  setList(tree);
  connect(context_.controller, &DocumentController::documentChanged, this,
          [this] { model_->setDocument(context_.controller->document()); });
  connect(context_.execution, &ExecutionState::changed, this, [this] {
    const auto& now = context_.execution->now();
    model_->setRunProblem(now.error, now.failed);
  });
  connect(model_, &QAbstractItemModel::modelReset, this, [this] {
    auto* dock = qobject_cast<QDockWidget*>(parentWidget());
    if (dock) dock->setWindowTitle(model_->rowCount() ? tr("Problems (%1)").arg(model_->rowCount()) : tr("Problems"));
  });
}

}  // namespace retrograd::views

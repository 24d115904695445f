#include "views/docks/problems_dock.h"

#include <QDockWidget>

#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

ProblemsDock::ProblemsDock(ViewContext context, QWidget* parent)
    : Panel(context, "problems", parent), model_(new ProblemsModel(this)) {
  auto* tree = new QTreeView(this);
  prepareTree(*tree, model_, "problems", tr("Problems"), {.isFlat = true, .isSorted = true, .wraps = true});
  setWidths(*tree, {{0, 80}, {1, 200}});
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

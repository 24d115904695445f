#include "views/docks/optimizer_dock.h"

#include "views/widgets/dock_tree.h"

namespace retrograd::views {

OptimizerDock::OptimizerDock(ViewContext context, QWidget* parent)
    : Panel(context, "optimizer", parent), model_(new OptimizerModel(this)), tree_(new QTreeView(this)) {
  prepareTree(*tree_, model_, "optimizer", tr("What the optimizer did, by parameter"));
  setWidths(*tree_, {{0, 190}});
  fillWith(tree_);
  setList(tree_);
  selectByClick(tree_);
  setDelay(100);
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &OptimizerDock::invalidate);
}

void OptimizerDock::forget() {
  shown_.reset();
  updates_.clear();
  known_ = 0;
  fill(nullptr);
}

QString OptimizerDock::emptyText() const {
  return unlessClosed(tr("No optimizer: a recording of training steps has one"));
}

void OptimizerDock::refresh() {
  const auto& open = context_.controller->document();
  if (!open) return;
  // Once without numbers, and once with all of them: rows that come and go would fold what a person unfolded.
  const auto& numbers = context_.controller->ahead().numbers();
  const bool isWhole = numbers.size() > 0 && numbers.known() == numbers.size();
  if (shown_ != open || (isWhole && known_ != numbers.known())) {
    known_ = isWhole ? numbers.known() : 0;
    fill(open);
  }
  askForUpdates(open->analysis, [this, open](const Updates& updates) {
    if (shown_ != open) return;
    updates_ = updates;
    fill(open);
  });
}

void OptimizerDock::fill(const std::shared_ptr<const OpenDocument>& open) {
  QSet<QString> unfolded;
  for (int row = 0; row < model_->rowCount(); ++row)
    if (const auto index = model_->index(row, 0); tree_->isExpanded(index)) unfolded.insert(index.data().toString());
  shown_ = open;
  model_->show(open, context_.controller->ahead().numbers(), updates_);
  for (int row = 0; row < model_->rowCount(); ++row)
    if (const auto index = model_->index(row, 0); unfolded.contains(index.data().toString())) tree_->expand(index);
}

}  // namespace retrograd::views

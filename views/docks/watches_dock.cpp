#include "views/docks/watches_dock.h"

#include <QAction>
#include <QHeaderView>

#include "views/widgets/controls.h"
#include "views/widgets/sorted_rows.h"
#include "views/widgets/state_delegate.h"

namespace retrograd::views {

WatchesDock::WatchesDock(ViewContext context, QWidget* parent)
    : Panel(context, "watches", parent), model_(new ValuesModel(this)), table_(new QTreeView(this)) {
  model_->followNotes(context_.notes);
  prepareTree(*table_, model_, "watches", tr("Watches"), {.isFlat = true, .isSorted = true});
  table_->header()->setStretchLastSection(false);
  table_->header()->hideSection(ValuesModel::label);
  table_->setItemDelegateForColumn(ValuesModel::state, new StateDelegate(table_));
  table_->header()->moveSection(table_->header()->visualIndex(ValuesModel::state), ValuesModel::label);
  columns_ = new ColumnFitter(table_);
  addListAction(table_, tr("Remove"), QKeySequence::Delete, [this] {
    context_.controller->marks().removeWatch(model_->valueAt(ofModel(table_->currentIndex()).row()));
  });
  fillWith(table_);
  setList(table_);
  setDelay(30);
  connect(context_.execution, &ExecutionState::watchesChanged, this, [this] {
    if (inSight()) showRows();
    invalidate();
  });
  connect(context_.execution, &ExecutionState::changed, this, &WatchesDock::invalidate);
  connect(table_, &QTreeView::clicked, this,
          [this](const QModelIndex& index) { context_.selection->selectValue(model_->valueAt(ofModel(index).row())); });
}

void WatchesDock::showRows() {
  const auto& watches = context_.execution->watches();
  if (model_->values() == watches) return;
  std::vector<ValueRow> rows;
  for (auto value : watches) {
    ValueRow row;
    row.value = value;
    rows.push_back(std::move(row));
  }
  model_->expectRows(context_.controller->document(), std::move(rows));
}

void WatchesDock::refresh() {
  showRows();
  const auto& open = context_.controller->document();
  const auto& watches = context_.execution->watches();
  if (!open || watches.empty() || context_.execution->now().running) return;
  ask(Asked::inSight, QStringLiteral("values"), {},
      [this, values = watches](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
        auto report = std::make_shared<ValueReport>();
        for (auto value : values) {
          progress.check();
          report->rows.push_back(reportValue(context.runner, *context.document.analysis->document, value));
        }
        return [this, report] { show(report); };
      });
}

void WatchesDock::show(const std::shared_ptr<const ValueReport>& report) {
  if (report->rows.size() != context_.execution->watches().size())
    return;  // one came or went: the next answer is under way
  model_->setReport(report);
  columns_->widen();
}

}  // namespace retrograd::views

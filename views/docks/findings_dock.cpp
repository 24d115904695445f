#include "views/docks/findings_dock.h"

#include <QAction>
#include <QHeaderView>
#include <QVBoxLayout>

#include "views/text/line_text.h"
#include "views/theme/tokens.h"
#include "views/widgets/command_button.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

FindingsDock::FindingsDock(ViewContext context, QAction* walk, QAction* check, QWidget* parent)
    : Panel(context, "findings", parent),
      model_(new NanModel(this)),
      tree_(new QTreeView(this)),
      summary_(new QLabel(this)) {
  tree_->setObjectName(QStringLiteral("findings"));
  tree_->setModel(model_);
  prepareTree(*tree_, tr("Findings: the way to the root of a NaN or Inf"), false);
  tree_->setWordWrap(true);
  tree_->setIndentation(14);
  tree_->header()->setStretchLastSection(true);
  tree_->header()->resizeSection(0, 170);
  summary_->setObjectName(QStringLiteral("findings-summary"));
  summary_->setTextFormat(Qt::PlainText);
  summary_->setWordWrap(true);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(6, 4, 6, 4);
  row->setSpacing(tokens::gap);
  for (auto* action : {walk, check}) row->addWidget(commandButton(action, this));
  row->addWidget(summary_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(row);
  layout->addWidget(tree_, 1);
  setList(tree_);
  connect(tree_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    const int value = index.data(valueRole).toInt();
    if (const auto op = opOf(index)) context_.selection->select(op, value >= 0 ? ValueId(value) : ValueId());
  });
  connect(&context_.controller->ahead().numbers(), &RunNumbers::badOpsChanged, this, &FindingsDock::tell);
  connect(context_.execution, &ExecutionState::changed, this, &FindingsDock::tell);
  forget();
}

void FindingsDock::forget() {
  model_->show(nullptr, {});
  walked_ = false;
  tell();
}

void FindingsDock::tell() {
  if (walked_) return;
  const auto& open = document();
  const auto& stopped = context_.execution->now().bad;
  const auto first = context_.controller->ahead().numbers().firstBad();
  const auto op = first ? first : stopped.empty() ? BoundSymbolId() : *stopped.begin();
  if (!open || !op) return summary_->setText(open ? tr("No NaN or Inf was seen") : QString());
  summary_->setText(tr("#%1 %2 made NaN or Inf").arg(op.index).arg(shortOpName(*open->analysis->document, op)));
}

void FindingsDock::walk(ValueId value) { ask(value, false); }

void FindingsDock::goToRoot() { ask({}, true); }

void FindingsDock::ask(ValueId value, bool select) {
  walked_ = true;
  const auto work = [this, value, select](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto way = std::make_shared<NanWalk>(walkNan(context, value, progress));
    return [this, way, select] {
      show(*way);
      if (select && way->root) context_.selection->select(way->root);
    };
  };
  askAloud(summary_, QStringLiteral("walk"), tr("Recording a run"), tr("Running the model to look for NaN and Inf..."),
           work);
}

void FindingsDock::show(const NanWalk& walk) {
  model_->show(context_.controller->document(), walk, context_.notes);
  tree_->expandToDepth(0);
  summary_->setText(walk.path.empty()         ? tr("Every value of the run is finite")
                    : walk.otherRoots.empty() ? tr("NaN or Inf: the root is below")
                                              : tr("NaN or Inf: %1 roots are below").arg(walk.otherRoots.size() + 1));
  updateEmptyText();
}

}  // namespace retrograd::views

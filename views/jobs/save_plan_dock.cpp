#include "views/jobs/save_plan_dock.h"

#include <QSplitter>
#include <QVBoxLayout>

#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

constexpr int budgetCount = 4;  // as the example of `graphs --save-plan --budgets` in the docs
const QString planQuestion = QStringLiteral("plan");

}  // namespace

SavePlanDock::SavePlanDock(ViewContext context, OpenJobLog* log, QAction* budgets, QWidget* parent)
    : Panel(context, "save-plan", parent),
      log_(log),
      model_(new SavePlanModel(this)),
      tree_(new QTreeView(this)),
      budgets_(new QStandardItemModel(0, budgetColumnCount, this)),
      budgetsTree_(new QTreeView(this)),
      summary_(new WrappedLabel(this)) {
  prepareTree(*tree_, model_, "save-plan", tr("Save plan"), {.wraps = true});
  using Rows = SavePlanRows;
  setWidths(*tree_, {{Rows::value, 220},
                     {Rows::type, 100},
                     {Rows::bytes, 70},
                     {Rows::op, 170},
                     {Rows::policy, 160},
                     {Rows::fate, 110}});
  budgets_->setHorizontalHeaderLabels({tr("Budget"), tr("Saved bytes"), tr("Peak bytes"), tr("Recomputed ops")});
  prepareTree(*budgetsTree_, budgets_, "save-plan-budgets", tr("Peak of memory at several budgets"), {.isFlat = true});
  summary_->setObjectName(QStringLiteral("save-plan-summary"));
  auto* row = withMargins(new QHBoxLayout, {6, 4, 8, 4});
  row->addWidget(commandButton(budgets, this), 0, Qt::AlignTop);
  row->addSpacing(6);
  row->addWidget(summary_, 1);
  auto* split = new QSplitter(this);
  split->setChildrenCollapsible(false);
  split->addWidget(tree_);
  split->addWidget(budgetsTree_);
  split->setStretchFactor(0, 2);
  split->setStretchFactor(1, 1);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addLayout(row);
  layout->addWidget(split, 1);
  setList(tree_);
  selectByClick(tree_);
  connect(log_, &OpenJobLog::changed, this, &SavePlanDock::invalidate);
  forget();
}

QString SavePlanDock::reason() const {
  if (const auto why = log_->reason(); !why.isEmpty()) return why;
  const auto document = this->document();
  if (document && document->analysis->backward.ops.empty()) return tr("The open compile has no backward");
  return failed_ ? why_ : QString();
}

void SavePlanDock::refresh() {
  if (const auto why = reason(); !why.isEmpty()) {
    why_ = why;
    return;
  }
  if (model_->rowCount() > 0 || state(planQuestion) == QuestionState::asked) return;
  log_->want();
  why_ = tr("The log is being read");
  if (log_->log()) askPlan();
}

void SavePlanDock::askPlan() {
  why_ = tr("The plan is being read");
  const auto work = [this, log = log_->log()](const QuestionContext& context, const Progress&) -> Worker::Deliver {
    const auto& data = context.document.request.data;
    const auto choice = jobs::chooseCompile(*log, data.compile, data.rank);
    const auto plan = std::make_shared<const SavePlan>(savePlanOf(readUnpairedGraphs(*log, *choice.attempt)));
    const auto rows = std::make_shared<const SavePlanRows>(*plan, *context.document.analysis);
    return [this, plan, rows] { show(*plan, rows); };
  };
  ask(Asked::inSight, planQuestion, tr("Reading the save plan"), work, [this](const QString& message) {
    failed_ = !message.isEmpty();
    why_ = message;
    updateEmptyText();
    Q_EMIT changed();
  });
}

void SavePlanDock::show(const SavePlan& plan, std::shared_ptr<const SavePlanRows> rows) {
  model_->show(std::move(rows));
  summary_->setText(totalsText(plan));
  spanSentences({});
  tree_->expandToDepth(1);
  tree_->collapse(
      model_->index(model_->rowCount() - 2, 0));  // every tensor of the forward: long, and the policies follow
  tree_->setCurrentIndex(model_->index(0, 0));
}

void SavePlanDock::spanSentences(const QModelIndex& parent) {
  for (int row = 0; row < model_->rowCount(parent); ++row) {
    const auto at = model_->index(row, 0, parent);
    bool isAlone = true;
    for (int column = 1; column < model_->columnCount(); ++column)
      isAlone &= at.siblingAtColumn(column).data().toString().isEmpty();
    tree_->setFirstColumnSpanned(row, parent, isAlone);
    if (!parent.isValid()) spanSentences(at);
  }
}

void SavePlanDock::askBudgets() {
  budgets_->removeRows(0, budgets_->rowCount());
  budgetsTree_->hide();
  const auto before = summary_->text();
  const auto work = [this, before](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto figures = figuresAtBudgets(budgetCount, [&](const PartitionOptions& partition) {
      return context.engine.whatIf(*context.document.analysis, partition, {}, progress).after;
    });
    return [this, figures, before] {
      for (const auto& [bytes, at] : figures) {
        QList<QStandardItem*> items;
        for (const auto number : {bytes, at.savedBytes, at.peakBytes, static_cast<std::int64_t>(at.recomputedOps)}) {
          auto* item = new QStandardItem(QString::number(number));
          item->setEditable(false);
          item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
          items << item;
        }
        budgets_->appendRow(items);
      }
      summary_->setText(before);
      budgetsTree_->setCurrentIndex(budgets_->index(0, 0));
      for (int column = 0; column < budgetColumnCount; ++column) budgetsTree_->resizeColumnToContents(column);
      budgetsTree_->show();
    };
  };
  askAloud(summary_, QStringLiteral("budgets"), tr("Peak of memory at several budgets"),
           tr("Splitting the model at %1 budgets...").arg(budgetCount), work);
}

void SavePlanDock::forget() {
  model_->show(nullptr);
  budgets_->removeRows(0, budgets_->rowCount());
  budgetsTree_->hide();
  summary_->clear();
  why_.clear();
  failed_ = false;
  Q_EMIT changed();
}

}  // namespace retrograd::views

#include "views/jobs/job_passes_window.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QSplitter>
#include <QVBoxLayout>

#include "core/trace/diff/diff_text.h"
#include "views/text/format.h"
#include "views/widgets/command_button.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/window_size.h"

namespace retrograd::views {
namespace {

QString followedText(const JobPass& pass, const FollowedOp& followed) {
  using State = FollowedOp::State;
  if (followed.ops.empty()) return followed.state == State::gone ? JobPassesWindow::tr("dropped") : QString();
  QStringList ops;
  const auto& document = *pass.analysis->document;
  for (const auto op : followed.ops) {
    const auto outputs = document.outputs(op);
    if (ops.size() == 4) {
      ops << QStringLiteral("\u2026");
      break;
    }
    ops << toQt((outputs.empty() ? std::string() : document.displayName(outputs[0]) + " = ") + document.opName(op));
  }
  const auto text = ops.join(QStringLiteral("; "));
  if (followed.state == State::replaced) return JobPassesWindow::tr("replaced: %1").arg(text);
  return followed.state == State::changed ? JobPassesWindow::tr("changed: %1").arg(text) : text;
}

}  // namespace

JobPassesWindow::JobPassesWindow(Theme* theme, std::shared_ptr<const JobPasses> passes, const QString& title,
                                 QWidget* parent)
    : QWidget(parent, Qt::Window),
      passes_(std::move(passes)),
      title_(title),
      list_(new QTreeView(this)),
      model_(new QStandardItemModel(0, columnCount, this)),
      view_(new DiffView(theme, this)),
      details_(new QPlainTextEdit(this)),
      summary_(new QLabel(this)),
      tools_(new QHBoxLayout),
      job_(new PoolJob(this)) {
  setObjectName(QStringLiteral("job-passes"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("%1 - Passes").arg(title));
  list_->setObjectName(QStringLiteral("job-passes-list"));
  model_->setHorizontalHeaderLabels({tr("Pass"), tr("Ops"), tr("Compared with"), tr("Changed"), tr("Gone"), tr("New"),
                                     tr("Moved"), tr("Op under the cursor")});
  for (const auto column : {changed, gone, added, moved})
    model_->setHeaderData(column, Qt::Horizontal, tr("Lines of the comparison: inputs and results count too"),
                          Qt::ToolTipRole);
  list_->setModel(model_);
  prepareTree(*list_, tr("Passes"), true);
  list_->setRootIsDecorated(false);
  list_->header()->setStretchLastSection(true);
  details_->setObjectName(QStringLiteral("job-passes-details"));
  details_->setAccessibleName(tr("The row under the cursor"));
  details_->setReadOnly(true);
  details_->setFont(Theme::codeFont());
  details_->setFrameShape(QFrame::NoFrame);
  details_->setTabChangesFocus(true);
  details_->setFixedHeight(QFontMetrics(details_->font()).lineSpacing() * 3 + 14);
  summary_->setObjectName(QStringLiteral("job-passes-summary"));
  summary_->setAccessibleName(tr("How much differs"));
  summary_->setTextFormat(Qt::PlainText);
  tools_->setContentsMargins(6, 3, 8, 4);
  addActions();
  tools_->addStretch(1);
  tools_->addWidget(summary_);
  auto* split = new QSplitter(Qt::Vertical, this);
  split->setChildrenCollapsible(false);
  split->addWidget(list_);
  split->addWidget(view_);
  split->setStretchFactor(1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(split, 1);
  layout->addWidget(details_);
  layout->addLayout(tools_);
  resizeWithinScreen(*this, {1400, 860});
  fillList();
  split->setSizes({list_->sizeHintForRow(0) * (model_->rowCount() + 1) + list_->header()->sizeHint().height(), 600});
  connect(list_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& row) {
    if (row.isValid()) choose(static_cast<std::size_t>(row.row()));
  });
  connect(list_, &QTreeView::activated, view_, [this] { view_->setFocus(); });
  connect(view_, &DiffView::cursorMoved, this, &JobPassesWindow::follow);
}

QAction* JobPassesWindow::addKey(const QString& text, const char* name, const QList<QKeySequence>& keys,
                                 void (JobPassesWindow::*run)()) {
  auto* action = new QAction(text, this);
  action->setObjectName(QLatin1String(name));
  action->setShortcuts(keys);
  action->setToolTip(tr("%1 (%2)").arg(text, keys.front().toString(QKeySequence::NativeText)));
  connect(action, &QAction::triggered, this, run);
  addAction(action);
  return action;
}

void JobPassesWindow::addActions() {
  for (auto* action :
       {addKey(tr("Previous Pass"), "job-passes-previous", {Qt::ALT | Qt::Key_Up}, &JobPassesWindow::previousPass),
        addKey(tr("Next Pass"), "job-passes-next", {Qt::ALT | Qt::Key_Down}, &JobPassesWindow::nextPass),
        addKey(tr("Previous Difference"), "job-passes-difference-before",
               {Qt::SHIFT | Qt::Key_F8, Qt::CTRL | Qt::Key_Up}, &JobPassesWindow::previousDifference),
        addKey(tr("Next Difference"), "job-passes-difference", {Qt::Key_F8, Qt::CTRL | Qt::Key_Down},
               &JobPassesWindow::nextDifference)})
    tools_->addWidget(commandButton(action, this));
  addKey(tr("Close"), "job-passes-close", {Qt::CTRL | Qt::Key_W}, &JobPassesWindow::shut);
}

void JobPassesWindow::fillList() {
  for (const auto& each : passes_->passes) {
    const auto* counts = each.diff ? &each.diff->counts : nullptr;
    const auto number = [&](std::size_t TraceDiff::Counts::* count) {
      return counts ? QString::number(counts->*count) : QString();
    };
    QList<QStandardItem*> items;
    for (const auto& text :
         {toQt(each.name), each.analysis ? QString::number(each.trace().ops.size()) : QStringLiteral("?"),
          each.before ? toQt(passes_->passes[*each.before].name) : QString(), number(&TraceDiff::Counts::changed),
          number(&TraceDiff::Counts::onlyLeft), number(&TraceDiff::Counts::onlyRight),
          number(&TraceDiff::Counts::moved), QString()}) {
      auto* item = new QStandardItem(text);
      item->setEditable(false);
      item->setToolTip(each.problem.empty() ? text : toQt(each.problem));
      items << item;
    }
    for (const auto column : {ops, changed, gone, added, moved})
      items[column]->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    model_->appendRow(items);
  }
  for (int column = 0; column < followed; ++column) list_->resizeColumnToContents(column);
}

void JobPassesWindow::showGraph(std::optional<std::size_t> graph) {
  show();
  raise();
  activateWindow();
  std::size_t row = 0;
  for (std::size_t i = passes_->passes.size(); i-- > 0;) {
    const auto& each = passes_->passes[i];
    if (graph ? each.graph == *graph : each.diff && !each.diff->equal()) row = i;
  }
  list_->setCurrentIndex(model_->index(static_cast<int>(row), 0));
  list_->setFocus();
}

void JobPassesWindow::step(int by) {
  const int row = static_cast<int>(chosen_) + by;
  if (row >= 0 && row < model_->rowCount()) list_->setCurrentIndex(model_->index(row, 0));
}

void JobPassesWindow::choose(std::size_t index) {
  chosen_ = index;
  const auto& right = passes_->passes[index];
  job_->cancel();
  summary_->clear();
  details_->clear();
  const auto say = [this](const QString& text) { view_->setMessage(text); };
  if (!right.analysis) return say(toQt(right.problem));
  // The first graph has none before it: it is shown on both sides.
  const auto& left = right.before ? passes_->passes[*right.before] : right;
  if (!left.analysis) return say(toQt(left.problem));
  say(tr("Comparing..."));
  const auto side = [](const JobPass& each) {
    return ComparedTrace{each.analysis, nullptr, &each.trace(), toQt(each.name)};
  };
  job_->start([this, index, left = side(left), right = side(right)](const Progress& progress) -> PoolJob::Deliver {
    auto comparison = compareTraces(left, right, progress);
    return [this, index, comparison] { shown(index, comparison); };
  });
}

void JobPassesWindow::shown(std::size_t index, const std::shared_ptr<const Comparison>& comparison) {
  view_->setMessage({});
  view_->show(DiffRows(comparison, false));
  summary_->setText(passes_->passes[index].before ? toQt(summaryOf(comparison->diff))
                                                  : tr("The first graph: there is none before it"));
  if (followed_.empty()) view_->step(true);
  reveal();
  describe();
}

void JobPassesWindow::follow() {
  describe();
  const auto [side, op] = view_->opUnderCursor();
  if (!op) return;
  const auto& right = passes_->passes[chosen_];
  const auto at = side == Side::left ? right.before.value_or(chosen_) : chosen_;
  followed_ = askFollowed(*passes_, at, op);
  for (std::size_t i = 0; i < followed_.size(); ++i) {
    auto* item = model_->item(static_cast<int>(i), followed);
    item->setText(passes_->passes[i].analysis ? followedText(passes_->passes[i], followed_[i]) : QString());
    item->setToolTip(item->text());
  }
}

void JobPassesWindow::reveal() {
  if (followed_.empty()) return;
  const auto& right = passes_->passes[chosen_];
  if (!followed_[chosen_].ops.empty()) return view_->reveal(Side::right, followed_[chosen_].ops.front());
  if (right.before && !followed_[*right.before].ops.empty())
    view_->reveal(Side::left, followed_[*right.before].ops.front());
}

void JobPassesWindow::describe() {
  const auto& rows = view_->rows();
  const auto cursor = view_->cursorRow();
  if (cursor < 0 || !rows.comparison()) return details_->clear();
  QStringList lines;
  const auto left = view_->textAt(cursor, Side::left), right = view_->textAt(cursor, Side::right);
  if (!left.isEmpty() && left == right) {
    lines << QStringLiteral("=  ") + left;
  } else {
    if (!left.isEmpty()) lines << QStringLiteral("\u25c0  ") + left;
    if (!right.isEmpty()) lines << QStringLiteral("\u25b6  ") + right;
  }
  if (const auto what = rows.explanation(cursor); !what.isEmpty()) lines << what;
  details_->setPlainText(lines.join(QLatin1Char('\n')));
}

}  // namespace retrograd::views

#include "views/jobs/job_passes_window.h"

#include <QFrame>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QSplitter>
#include <QVBoxLayout>

#include "core/trace/diff/diff_text.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/window_size.h"

namespace retrograd::views {
namespace {

QString followedText(const JobPass& pass, const FollowedOp& followed) {
  using State = FollowedOp::State;
  if (followed.ops.empty()) return followed.state == State::gone ? tr("dropped") : QString();
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
  if (followed.state == State::replaced) return tr("replaced: %1").arg(text);
  return followed.state == State::changed ? tr("changed: %1").arg(text) : text;
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
  model_->setHorizontalHeaderLabels({tr("Pass"), tr("Ops"), tr("Compared with"), tr("Changed"), tr("Gone"), tr("New"),
                                     tr("Moved"), tr("Op under the cursor")});
  for (const auto column : {changed, gone, added, moved})
    model_->setHeaderData(column, Qt::Horizontal, tr("Lines of the comparison: inputs and results count too"),
                          Qt::ToolTipRole);
  prepareTree(*list_, model_, "job-passes-list", tr("Passes"), {.isFlat = true});
  named(details_, "job-passes-details", tr("The row under the cursor"));
  details_->setReadOnly(true);
  details_->setFont(Theme::codeFont());
  details_->setFrameShape(QFrame::NoFrame);
  details_->setTabChangesFocus(true);
  details_->setFixedHeight(QFontMetrics(details_->font()).lineSpacing() * 3 + 14);
  named(summary_, "job-passes-summary", tr("How much differs"));
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
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
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

void JobPassesWindow::addActions() {
  const auto add = [this](const QString& text, const char* name, const QList<QKeySequence>& keys, auto run) {
    tools_->addWidget(commandButton(addWindowAction(this, text, name, keys, run), this));
  };
  add(tr("Previous Pass"), "job-passes-previous", {Qt::ALT | Qt::Key_Up}, [this] { step(-1); });
  add(tr("Next Pass"), "job-passes-next", {Qt::ALT | Qt::Key_Down}, [this] { step(1); });
  add(tr("Previous Difference"), "job-passes-difference-before", {Qt::SHIFT | Qt::Key_F8, Qt::CTRL | Qt::Key_Up},
      [this] { view_->step(false); });
  add(tr("Next Difference"), "job-passes-difference", {Qt::Key_F8, Qt::CTRL | Qt::Key_Down},
      [this] { view_->step(true); });
  addWindowAction(this, tr("Close"), "job-passes-close", {Qt::CTRL | Qt::Key_W}, [this] { close(); });
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
      items << textCell(text);
      if (!each.problem.empty()) items.back()->setToolTip(toQt(each.problem));
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
  details_->setPlainText(view_->cursorText());
}

void JobPassesWindow::follow() {
  details_->setPlainText(view_->cursorText());
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

}  // namespace retrograd::views

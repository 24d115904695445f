#include "views/docks/watches_dock.h"

#include <QAction>
#include <QHeaderView>
#include <QPainter>

#include "views/docks/dock_tree.h"

namespace retrograd::views {
namespace {

const QString watchTag = QStringLiteral("watches");

}  // namespace

WatchesDock::WatchesDock(ViewContext context, QWidget* parent) : QTreeView(parent), context_(context), model_(new ValuesModel(this)) {
  setObjectName(QStringLiteral("watches"));
  setModel(model_);
  model_->followNotes(context_.notes);
  prepareTree(*this, tr("Watches"), true);
  setRootIsDecorated(false);
  header()->setStretchLastSection(false);
  header()->hideSection(ValuesModel::label);
  auto* remove = new QAction(tr("Remove"), this);
  remove->setShortcut(QKeySequence::Delete);
  remove->setShortcutContext(Qt::WidgetShortcut);
  addAction(remove);
  setContextMenuPolicy(Qt::ActionsContextMenu);
  soon_.setSingleShot(true);
  soon_.setInterval(30);
  connect(&soon_, &QTimer::timeout, this, &WatchesDock::request);
  connect(remove, &QAction::triggered, this, [this] { context_.controller->removeWatch(model_->valueAt(currentIndex().row())); });
  connect(context_.execution, &ExecutionState::watchesChanged, this, &WatchesDock::refresh);
  connect(context_.execution, &ExecutionState::changed, this, &WatchesDock::ask);
  connect(this, &QTreeView::clicked, this, [this](const QModelIndex& index) { context_.selection->selectValue(model_->valueAt(index.row())); });
  connect(this, &QTreeView::activated, this, [this](const QModelIndex& index) {
    if (const auto op = opOf(index)) Q_EMIT jumpRequested(op);
  });
}

void WatchesDock::refresh() {
  if (!isVisible()) return;
  std::vector<ValueRow> rows;
  for (auto value : context_.execution->watches()) {
    ValueRow row;
    row.value = value;
    rows.push_back(std::move(row));
  }
  model_->expectRows(context_.controller->document(), std::move(rows));
  viewport()->update();
  ask();
}

void WatchesDock::ask() {
  if (isVisible()) soon_.start();
}

void WatchesDock::request() {
  if (!isVisible() || context_.execution->now().running || context_.execution->watches().empty()) return;
  const auto question = [this, values = context_.execution->watches()](const Bench& bench, const Progress& progress) -> Worker::Deliver {
    auto report = std::make_shared<ValueReport>();
    for (auto value : values) {
      progress.check();
      report->rows.push_back(reportValue(bench.runner, *bench.document.analysis->document, value));
    }
    return [this, report] { show(report); };
  };
  context_.controller->ask(this, watchTag, {}, question);
}

void WatchesDock::show(const std::shared_ptr<const ValueReport>& report) {
  if (report->rows.size() != context_.execution->watches().size()) return;  // one came or went: the next answer is under way
  model_->setReport(report);
  for (int column = 0; column < ValuesModel::columns; ++column) resizeColumnToContents(column);
}

void WatchesDock::paintEvent(QPaintEvent* event) {
  QTreeView::paintEvent(event);
  if (model_->rowCount() > 0) return;
  QPainter painter(viewport());
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(viewport()->rect().adjusted(12, 0, -12, 0), Qt::AlignCenter | Qt::TextWordWrap,
                   tr("Nothing is watched: select a value and choose Value > Watch"));
}

void WatchesDock::showEvent(QShowEvent* event) {
  QTreeView::showEvent(event);
  refresh();
}

void WatchesDock::hideEvent(QHideEvent* event) {
  context_.controller->cancelQuestion(watchTag);
  QTreeView::hideEvent(event);
}

}  // namespace retrograd::views

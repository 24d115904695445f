#include "views/jobs/job_dock.h"

#include <QFileInfo>
#include <QHeaderView>

#include "core/formats/jobs/job_log.h"
#include "views/text/format.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {
namespace {

/// Adds a row below `parent`.
QStandardItem* addRow(QStandardItem* parent, const QString& what, const QString& ops, const QString& note) {
  QList<QStandardItem*> row;
  for (const auto& text : {what, ops, note}) {
    auto* item = new QStandardItem(text);
    item->setEditable(false);
    item->setToolTip(text);
    row << item;
  }
  row[JobDock::ops]->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  parent->appendRow(row);
  return row.front();
}

enum Role { compileRole = Qt::UserRole + 40, rankRole };  // of a compile's row: its name for GivenData::compile; of a process: its rank

QString timesOf(const jobs::Attempt& attempt) {
  QStringList parts;
  if (attempt.seconds) parts << JobDock::tr("%1 s").arg(*attempt.seconds, 0, 'f', 2);
  if (attempt.backwardSeconds) parts << JobDock::tr("backward %1 s").arg(*attempt.backwardSeconds, 0, 'f', 2);
  return parts.join(QStringLiteral(", "));
}

void addProblems(QStandardItem* parent, const std::vector<Problem>& problems) {
  for (const auto& problem : problems) addRow(parent, JobDock::tr("problem"), {}, toQt(problem.message));
}

void addAttempt(QStandardItem* parent, const jobs::Attempt& attempt) {
  auto* row = addRow(parent, JobDock::tr("attempt %1").arg(attempt.number), {}, timesOf(attempt));
  if (!attempt.failType.empty()) addRow(row, JobDock::tr("failed"), {}, toQt(attempt.failType) + QStringLiteral(": ") + toQt(attempt.failReason));
  if (!attempt.graphBreak.empty()) addRow(row, JobDock::tr("graph break"), {}, toQt(attempt.graphBreak));
  for (const auto& restart : attempt.restarts) addRow(row, JobDock::tr("started again"), {}, toQt(restart));
  for (const auto& graph : attempt.graphs)
    addRow(row, toQt(std::string(name(graph.kind))), QString::number(graph.ops),
           graph.damaged ? JobDock::tr("not whole: its text is not what was written") : QString());
}

void addProcess(QStandardItem* parent, const jobs::JobLog& log, const jobs::Process& process) {
  const auto title = process.rank ? JobDock::tr("rank %1").arg(*process.rank) : JobDock::tr("process %1").arg(toQt(process.pid));
  QStringList notes;
  if (!process.torchVersion.empty()) notes << QStringLiteral("PyTorch ") + toQt(process.torchVersion);
  notes << QFileInfo(toQt(log.files[process.file].path)).fileName();
  auto* row = addRow(parent, title, {}, notes.join(QStringLiteral(", ")));
  if (process.rank) row->setData(QVariant::fromValue<qlonglong>(*process.rank), rankRole);
  for (const auto& compile : process.compiles) {
    auto place = toQt(compile.function);
    if (!compile.file.empty()) place += QStringLiteral("  %1:%2").arg(toQt(compile.file)).arg(compile.line);
    auto* compileRow = addRow(row, toQt(nameOf(compile)), {}, place);
    compileRow->setData(toQt(nameOf(compile)), compileRole);
    for (const auto& attempt : compile.attempts) addAttempt(compileRow, attempt);
  }
  addProblems(row, process.problems);
}

}  // namespace

JobDock::JobDock(ViewContext context, QWidget* parent)
    : Panel(context, "job", parent), model_(new QStandardItemModel(0, columnCount, this)), tree_(new QTreeView(this)) {
  model_->setHorizontalHeaderLabels({tr("Graph"), tr("Ops"), tr("Time, place or reason")});
  tree_->setObjectName(QStringLiteral("job"));
  tree_->setModel(model_);
  prepareTree(*tree_, tr("Job"), true);
  tree_->header()->setStretchLastSection(true);
  tree_->header()->resizeSection(what, 240);
  tree_->header()->resizeSection(ops, 60);
  fillWith(tree_);
  setList(tree_);
  connect(context_.controller, &DocumentController::documentChanged, this, &JobDock::invalidate);
}

void JobDock::refresh() {
  const auto open = document();
  if (open == shown_) return;
  shown_ = open;
  clear(open ? tr("The log is being read") : QString());
  if (!open) return job_.cancel();
  job_.start([this, path = open->request.path](const Progress& progress) -> PoolJob::Deliver {
    std::shared_ptr<const jobs::JobLog> log;
    QString why = tr("The open file is not a log of torch.compile");
    try {
      if (jobs::isJobLog(path)) log = std::make_shared<jobs::JobLog>(jobs::openJobLog(path, progress));
    } catch (const Error& e) {
      why = toQt(std::string(e.what()));
    }
    return [this, log, why] {
      clear(why);
      if (!log) return;
      for (const auto& process : log->processes) addProcess(model_->invisibleRootItem(), *log, process);
      addProblems(model_->invisibleRootItem(), log->problems);
      tree_->expandToDepth(0);
    };
  });
}

void JobDock::activate(const QModelIndex& row) {
  const auto open = document();
  if (!open) return;
  QString compile;
  std::optional<std::int64_t> rank;
  for (auto at = row.siblingAtColumn(what); at.isValid(); at = at.parent()) {
    if (const auto name = at.data(compileRole); name.isValid() && compile.isEmpty()) compile = name.toString();
    if (const auto number = at.data(rankRole); number.isValid()) rank = number.toLongLong();
  }
  if (compile.isEmpty()) return;
  auto request = open->request;
  request.data.compile = compile.toStdString();
  request.data.rank = rank;
  context_.controller->open(request);
}

void JobDock::forget() {
  job_.cancel();
  shown_.reset();
  clear({});
}

void JobDock::clear(const QString& why) {
  model_->removeRows(0, model_->rowCount());
  why_ = why;
  updateEmptyText();
}

QString JobDock::emptyText() const { return unlessClosed(why_); }

}  // namespace retrograd::views

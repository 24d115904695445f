#include "views/jobs/job_dock.h"

#include <QFileInfo>
#include <QSplitter>
#include <QVBoxLayout>

#include "core/formats/checkpoint/given_weights.h"
#include "views/engine/torch_calls.h"
#include "views/findings/finding_board.h"
#include "views/jobs/job_graphs_window.h"
#include "views/jobs/job_passes_window.h"
#include "views/jobs/opinion_places.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

/// Adds a row below `parent`.
QStandardItem* addRow(QStandardItem* parent, const QString& what, const QString& ops, const QString& note) {
  const QList row{textCell(what), textCell(ops), textCell(note)};
  row[JobDock::ops]->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  parent->appendRow(row);
  return row.front();
}

enum Role {
  processRole = Qt::UserRole + 40,
  compileRole,
  attemptRole,
  graphRole
};  // places in the log, each within the one before

/// The attempt that ran: the last with ATen graphs, else the last with any; null where there is none.
const jobs::Attempt* attemptThatRan(const jobs::Compile& compile) {
  const jobs::Attempt* any = nullptr;
  for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt) {
    if (attempt->find(jobs::GraphKind::forward) || attempt->find(jobs::GraphKind::joint) ||
        attempt->find(jobs::GraphKind::inference))
      return &*attempt;
    if (!any && !attempt->graphs.empty()) any = &*attempt;
  }
  return any;
}

QString timesOf(const jobs::Attempt& attempt) {
  QStringList parts;
  if (attempt.seconds) parts << tr("%1 s").arg(*attempt.seconds, 0, 'f', 2);
  if (attempt.backwardSeconds) parts << tr("backward %1 s").arg(*attempt.backwardSeconds, 0, 'f', 2);
  return parts.join(QStringLiteral(", "));
}

void addProblems(QStandardItem* parent, const std::vector<Problem>& problems) {
  for (const auto& problem : problems) addRow(parent, tr("problem"), {}, toQt(problem.message));
}

void addAttempt(QStandardItem* parent, const jobs::Attempt& attempt, int number) {
  auto* row = addRow(parent, tr("attempt %1").arg(attempt.number), {}, timesOf(attempt));
  row->setData(number, attemptRole);
  if (!attempt.failType.empty())
    addRow(row, tr("failed"), {}, toQt(attempt.failType) + QStringLiteral(": ") + toQt(attempt.failReason));
  for (const auto& reason : attempt.recompileReasons) addRow(row, tr("compiled again"), {}, toQt(reason));
  if (!attempt.graphBreak.empty()) addRow(row, tr("graph break"), {}, toQt(attempt.graphBreak));
  for (const auto& restart : attempt.restarts) addRow(row, tr("started again"), {}, toQt(restart));
  int place = 0;
  for (const auto& graph : attempt.graphs) {
    auto* item = addRow(row, toQt(nameOf(graph)), QString::number(graph.ops),
                        graph.damaged ? tr("not whole: its text is not what was written") : QString());
    item->setData(place++, graphRole);
  }
}

void addProcess(QStandardItem* parent, const jobs::JobLog& log, int number) {
  const auto& process = log.processes[number];
  const auto title = process.rank ? tr("rank %1").arg(*process.rank) : tr("process %1").arg(toQt(process.pid));
  QStringList notes;
  if (!process.torchVersion.empty()) notes << QStringLiteral("PyTorch ") + toQt(process.torchVersion);
  notes << QFileInfo(toQt(log.files[process.file].path)).fileName();
  auto* row = addRow(parent, title, {}, notes.join(QStringLiteral(", ")));
  row->setData(number, processRole);
  int nth = 0;
  for (const auto& compile : process.compiles) {
    auto place = toQt(compile.function);
    if (!compile.file.empty()) place += QStringLiteral("  %1:%2").arg(toQt(compile.file)).arg(compile.line);
    auto* compileRow = addRow(row, toQt(nameOf(compile)), {}, place);
    compileRow->setData(nth++, compileRole);
    int tried = 0;
    for (const auto& attempt : compile.attempts) addAttempt(compileRow, attempt, tried++);
  }
  addProblems(row, process.problems);
}

}  // namespace

JobDock::JobDock(ViewContext context, OpenJobLog* log, const Actions& actions, QWidget* parent)
    : Panel(context, "job", parent),
      log_(log),
      model_(new QStandardItemModel(0, columnCount, this)),
      tree_(new QTreeView(this)),
      findings_(new OpinionModel(this)),
      findingsTree_(new QTreeView(this)),
      summary_(new WrappedLabel(this)),
      columns_(new ColumnFitter(tree_)) {
  model_->setHorizontalHeaderLabels({tr("Graph"), tr("Ops"), tr("Time, place or reason")});
  prepareTree(*tree_, model_, "job", tr("Job"));
  const QList<QAction*> commands{actions.ownGraphs, actions.passes, actions.opinion};
  tree_->addActions(commands);
  prepareTree(*findingsTree_, findings_, "job-opinion", tr("Second opinion"), {.wraps = true});
  setWidths(*findingsTree_, {{OpinionModel::what, 140}});
  summary_->setObjectName(QStringLiteral("job-summary"));
  auto* row = withMargins(new QHBoxLayout, {6, 4, 8, 4});
  for (auto* action : commands) row->addWidget(commandButton(action, this));
  row->addStretch(1);
  summary_->setContentsMargins(8, 0, 8, 4);
  summary_->hide();
  auto* split = new QSplitter(this);
  split->setChildrenCollapsible(false);
  split->addWidget(tree_);
  split->addWidget(findingsTree_);
  split->setStretchFactor(0, 2);
  split->setStretchFactor(1, 3);  // sentences need more room than names
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addLayout(row);
  layout->addWidget(summary_);
  layout->addWidget(split, 1);
  addList(findingsTree_);
  setList(tree_);
  connect(log_, &OpenJobLog::changed, this, &JobDock::invalidate);
  forget();
}

void JobDock::refresh() {
  const auto why = log_->reason();
  if (!why.isEmpty()) return clear(why);
  log_->want();
  if (!log_->log()) return clear(tr("The log is being read"));
  if (shown_ != log_->log()) showTree();
}

void JobDock::say(const QString& text) {
  summary_->setText(text);
  summary_->setVisible(!text.isEmpty());
}

void JobDock::showTree() {
  clear({});
  shown_ = log_->log();
  for (std::size_t i = 0; i < shown_->processes.size(); ++i)
    addProcess(model_->invisibleRootItem(), *shown_, static_cast<int>(i));
  addProblems(model_->invisibleRootItem(), shown_->problems);
  tree_->expandToDepth(0);
  columns_->fit();
  // The compile that is open as the model is the one that commands are about, until another is chosen.
  const auto model = open();
  if (!model.place.compile) return;
  const auto process = static_cast<int>(model.place.process - shown_->processes.data());
  const auto row = static_cast<int>(model.place.compile - model.place.process->compiles.data());
  const auto index = model_->index(row, what, model_->index(process, what));
  for (int column = 0; column < columnCount; ++column) {
    auto* item = model_->itemFromIndex(index.siblingAtColumn(column));
    auto font = item->font();
    font.setBold(true);
    item->setFont(font);
    item->setToolTip(tr("Open as the model"));
  }
  tree_->setCurrentIndex(index);
  tree_->expandRecursively(index);
  columns_->fit();
}

JobDock::Choice JobDock::open() const {
  const auto& document = context_.controller->document();
  const auto& log = log_->log();
  if (!document || !log) return {};
  const auto& data = document->request.data;
  try {
    const auto place = jobs::chooseCompile(*log, data.compile, data.rank);
    return {place, data.compile.empty() ? nameOf(*place.compile) : data.compile, {}, true};
  } catch (const Error&) {  // the log on disk is another by now
    return {};
  }
}

JobDock::Choice JobDock::choiceAt(const QModelIndex& row) const {
  if (!shown_) return {};
  std::optional<std::size_t> process, compile, attempt, graph;
  const auto note = [](std::optional<std::size_t>& place, const QModelIndex& at, int role) {
    if (const auto value = at.data(role); value.isValid()) place = static_cast<std::size_t>(value.toInt());
  };
  for (auto at = row.siblingAtColumn(what); at.isValid(); at = at.parent()) {
    note(process, at, processRole);
    note(compile, at, compileRole);
    note(attempt, at, attemptRole);
    note(graph, at, graphRole);
  }
  if (!process || !compile) return {};
  Choice choice;
  choice.place.process = &shown_->processes[*process];
  choice.place.compile = &choice.place.process->compiles[*compile];
  const auto* ran = attemptThatRan(*choice.place.compile);
  choice.place.attempt = attempt ? &choice.place.compile->attempts[*attempt] : ran;
  choice.compile = nameOf(*choice.place.compile);
  if (choice.place.attempt != ran) choice.compile += "_" + std::to_string(choice.place.attempt->number);
  choice.graph = graph;
  choice.isOpen = choice.place.attempt == open().place.attempt;
  return choice;
}

JobDock::Choice JobDock::chosen() const {
  const auto choice = choiceAt(tree_->currentIndex());
  return choice.place.compile ? choice : open();
}

void JobDock::activate(const QModelIndex& row) { row.model() == findings_ ? openFinding(row) : openModel(row); }

void JobDock::openModel(const QModelIndex& row) {
  const auto document = this->document();
  const auto choice = choiceAt(row);
  if (!document || !choice.place.compile) return;
  if (choice.graph && choice.isOpen) return openGraphs(choice, 0);
  auto request = document->request;
  request.data.compile = nameOf(*choice.place.compile);
  request.data.rank = choice.place.process->rank;
  context_.controller->open(request);
}

void JobDock::openFinding(const QModelIndex& row) {
  if (opOf(row)) return Panel::activate(row);
  if (const auto line = row.data(OpinionModel::lineRole); line.isValid()) openGraphs(asked_, line.toInt());
}

void JobDock::showOwnGraphs() {
  log_->want([this] { openGraphs(chosen(), 0); });
}

QString JobDock::titleOf(const Choice& choice) const {
  auto title = toQt(choice.compile);
  if (choice.place.process->rank) title += tr(" of rank %1").arg(*choice.place.process->rank);
  if (!choice.place.compile->function.empty()) title += QStringLiteral("  ") + toQt(choice.place.compile->function);
  return title + QStringLiteral(" - ") + QFileInfo(toQt(log_->log()->path)).fileName();
}

void JobDock::openGraphs(const Choice& choice, int backwardLine) {
  const auto* attempt = choice.place.attempt;
  if (!attempt || attempt->graphs.empty()) return say(tr("The log has no graph of this compile"));
  const auto title = titleOf(choice);
  JobGraphsWindow* graphs = nullptr;
  for (auto* other : window()->findChildren<JobGraphsWindow*>(QString(), Qt::FindDirectChildrenOnly))
    if (other->title() == title) graphs = other;
  if (!graphs) graphs = new JobGraphsWindow(context_.theme, log_->log(), *attempt, title, window());
  if (backwardLine > 0) return graphs->showGraph(jobs::GraphKind::backward, backwardLine);
  if (choice.graph) return graphs->showGraph(*choice.graph);
  graphs->showGraph(attempt->find(jobs::GraphKind::joint) ? jobs::GraphKind::joint : jobs::GraphKind::forward);
}

void JobDock::askPasses() {
  log_->want([this] { openPasses(chosen()); });
}

void JobDock::openPasses(const Choice& choice) {
  if (!choice.place.attempt || choice.place.attempt->graphs.empty())
    return say(tr("The log has no graph of this compile"));
  const auto title = titleOf(choice);
  for (auto* other : window()->findChildren<JobPassesWindow*>(QString(), Qt::FindDirectChildrenOnly))
    if (other->title() == title) return other->showGraph(choice.graph);
  const auto before = summary_->text();
  const auto work = [this, log = log_->log(), choice, title, before](const QuestionContext&,
                                                                     const Progress& progress) -> Worker::Deliver {
    const auto passes = std::make_shared<const JobPasses>(askJobPasses(*log, choice.place, progress));
    return [this, passes, title, graph = choice.graph, before] {
      say(before);
      (new JobPassesWindow(context_.theme, passes, title, window()))->showGraph(graph);
    };
  };
  summary_->show();
  askAloud(summary_, QStringLiteral("passes"), tr("Reading the passes of %1").arg(toQt(choice.compile)),
           tr("Reading the passes..."), work);
}

void JobDock::askOpinion() {
  log_->want([this] { ask(chosen()); });
}

void JobDock::ask(const Choice& choice) {
  if (!choice.place.compile) return say(tr("The log has no graph of a compile"));
  asked_ = choice;
  findings_->removeRows(0, findings_->rowCount());
  findingsTree_->hide();
  const auto work = [this, log = log_->log(), choice](const QuestionContext& context,
                                                      const Progress& progress) -> Worker::Deliver {
    const auto& data = context.document.request.data;
    SecondOpinionRequest request;
    request.compile = choice.compile;
    request.rank = choice.place.process->rank;
    request.seed = context.document.request.seed.value_or(0);
    request.useWhatBinds = true;
    if (!data.weights.empty()) request.weights = readWeights(data, progress);
    if (!data.batch.empty()) request.batch = readBatchFile(data.batch, progress).tensors;
    auto opinion = askSecondOpinion(*log, request, progress);
    opinion.imported.clear();
    std::vector<BoundSymbolId> places;
    for (const auto& place : opinion.places)
      places.push_back(choice.isOpen ? derivedOp(*context.document.analysis, place) : BoundSymbolId());
    return [this, opinion = std::move(opinion), places = std::move(places)] {
      say(verdictText(opinion));
      auto report = opinion.report;
      for (std::size_t i = 0; i < report.claims.size(); ++i)
        report.claims[i].op = i < places.size() ? places[i] : BoundSymbolId();  // of the document that is open
      FindingBoard::of(*context_.controller).setReport(name(), std::move(report));
      findings_->show(opinion, places);
      findingsTree_->expandAll();
      findingsTree_->setCurrentIndex(findings_->index(0, 0));
      findingsTree_->show();
    };
  };
  summary_->show();
  askAloud(summary_, QStringLiteral("opinion"), tr("Second opinion on %1").arg(toQt(choice.compile)),
           tr("Comparing %1...").arg(toQt(choice.compile)), work);
}

void JobDock::forget() {
  shown_.reset();
  asked_ = {};
  findings_->removeRows(0, findings_->rowCount());
  findingsTree_->hide();
  say({});
  clear({});
}

void JobDock::clear(const QString& why) {
  shown_.reset();
  model_->removeRows(0, model_->rowCount());
  why_ = why;
  updateEmptyText();
}

}  // namespace retrograd::views

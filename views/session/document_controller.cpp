#include "views/session/document_controller.h"

#include <QFileInfo>
#include <utility>

#include "views/models/format.h"

namespace retrograd::views {

/// The runner of one document. Made, used and destroyed on the worker, since tensors hang on it.
struct DocumentController::Slot {
  std::unique_ptr<Runner> runner;
  std::uint64_t stops = 0;  ///< how often a command ended early: by a bad number, an error or the user
};

/// What came of a command.
struct DocumentController::Outcome {
  std::uint64_t number = 0;
  std::size_t position = 0;
  StopReason reason = StopReason::step;
  std::int64_t live = 0, peak = 0;
  QString error;

  bool stopped() const { return reason == StopReason::badNumber || reason == StopReason::error || reason == StopReason::cancelled; }
};

/// What an open brings back.
struct DocumentController::Opened {
  std::shared_ptr<OpenDocument> document;
  std::shared_ptr<Slot> slot;
};

namespace {

const QString openTag = QStringLiteral("open");
const QString runTag = QStringLiteral("run");
const QString valuesTag = QStringLiteral("values");
const QString breakTag = QStringLiteral("breakpoints");
const QString badTag = QStringLiteral("bad numbers");

QString fileName(const std::string& path) { return QFileInfo(toQt(path)).fileName(); }

/// Indexes an analysis for the listings; on the worker, as it walks every op.
std::shared_ptr<OpenDocument> prepare(std::shared_ptr<const Analysis> analysis, const OpenRequest& request, const Progress& progress) {
  auto document = std::make_shared<OpenDocument>();
  document->request = request;
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    document->traces[static_cast<std::size_t>(kind)] = indexTrace(analysis, kind, progress);
  document->saved = savedValues(*analysis);
  document->program = Program(analysis);
  document->analysis = std::move(analysis);
  return document;
}

}  // namespace

DocumentController::DocumentController(std::shared_ptr<Worker> worker, std::shared_ptr<Engine> engine, ExecutionState* execution,
                                       QObject* parent)
    : QObject(parent), worker_(std::move(worker)), engine_(std::move(engine)), execution_(execution) {}

DocumentController::~DocumentController() {
  worker_->cancelAll(this);
  discard(std::exchange(slot_, nullptr));
}

void DocumentController::open(const OpenRequest& request) { startOpen(request, false); }

void DocumentController::reload() {
  if (document_) startOpen(document_->request, true);
}

void DocumentController::startOpen(const OpenRequest& request, bool keepMarks) {
  stop();
  const auto number = ++openNumber_;
  opening_ = true;
  Q_EMIT openingChanged();
  Worker::Job job;
  job.tag = openTag;
  job.title = tr("Opening %1").arg(fileName(request.path));
  job.replaceRunning = true;
  job.work = [this, number, engine = engine_, request, keepMarks](const Progress& progress) -> Worker::Deliver {
    auto opened = std::make_shared<Opened>();
    auto analysis = engine->open(request, progress);
    progress.at("listings", 0.95);
    opened->document = prepare(analysis, request, progress);
    opened->slot = std::make_shared<Slot>();
    if (!analysis->derived()) {
      opened->document->noRunReason = tr("There is no forward and backward to run: see Problems");
    } else {
      try {
        opened->slot->runner = engine->run(analysis);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::cancelled) throw;
        opened->document->noRunReason = QString::fromStdString(error.what());
      }
    }
    return [this, number, opened, keepMarks] {
      if (number != openNumber_) return discard(opened->slot);
      opening_ = false;
      publish(opened, keepMarks);
      Q_EMIT openingChanged();
    };
  };
  job.failed = [this, number, path = toQt(request.path)](const Error& error) {
    if (number != openNumber_) return;
    opening_ = false;
    Q_EMIT openingChanged();
    if (error.code() != ErrorCode::cancelled) Q_EMIT openFailed(QString::fromStdString(error.what()), path);
  };
  worker_->post(this, std::move(job));
}

void DocumentController::publish(const std::shared_ptr<Opened>& opened, bool keepMarks) {
  std::set<BoundSymbolId> breakpoints;
  if (keepMarks && document_) {
    std::vector<OpKey> keys;
    for (auto op : execution_->breakpoints()) keys.push_back(keyOf(*document_->analysis, op));
    for (auto op : findKeys(*opened->document->analysis, keys))
      if (opened->document->program.executed(op)) breakpoints.insert(op);
  }
  leaveDocument();
  slot_ = opened->slot;
  opened->document->generation = generation_;
  document_ = opened->document;
  goal_ = 0;
  stops_ = 0;
  settled_ = commandNumber_;
  auto execution = execution_->now();
  execution.available = opened->document->noRunReason.isEmpty();
  execution.unavailableReason = opened->document->noRunReason;
  execution.size = document_->program.size();
  execution.forwardSize = document_->program.forwardSize();
  execution.current = document_->program.opAt(0);
  Q_EMIT documentChanged();
  execution_->setBreakpoints(std::move(breakpoints));
  execution_->set(execution);
  pushBreakpoints();
  if (execution.breakOnBadNumber) setBreakOnBadNumber(true);
}

void DocumentController::leaveDocument() {
  // Ids are of one document: everyone lets go of them before another one comes.
  Q_EMIT documentAboutToChange();
  execution_->setBreakpoints({});
  Execution execution;
  execution.breakOnBadNumber = execution_->now().breakOnBadNumber;
  execution_->set(execution);
  discard(std::exchange(slot_, nullptr));
  ++generation_;
}

void DocumentController::cancelOpen() {
  if (!opening_) return;
  ++openNumber_;
  opening_ = false;
  worker_->cancel(this, openTag);
  Q_EMIT openingChanged();
}

void DocumentController::close() {
  cancelOpen();
  worker_->cancelAll(this);
  leaveDocument();
  document_.reset();
  Q_EMIT documentChanged();
}

void DocumentController::discard(std::shared_ptr<Slot> slot) {
  if (!slot) return;
  Worker::Job job;
  job.work = [slot = std::move(slot)](const Progress&) -> Worker::Deliver {
    slot->runner.reset();
    return {};
  };
  worker_->post(nullptr, std::move(job));
}

void DocumentController::stepInto() { walkTo(std::min(goal_ + 1, execution_->now().size)); }
void DocumentController::stepIntoBack() { walkTo(goal_ == 0 ? 0 : goal_ - 1); }

void DocumentController::stepOver() {
  if (document_) walkTo(document_->program.stepOver(goal_, execution_->breakpoints()));
}

void DocumentController::stepOverBack() {
  if (document_) walkTo(document_->program.stepOverBack(goal_, execution_->breakpoints()));
}

void DocumentController::walkTo(std::size_t goal) {
  if (!document_) return;
  command(tr("Step"), true, goal, [goal, document = document_](Runner& runner, const Progress& progress) {
    auto reason = StopReason::step;
    const auto from = runner.position();
    const auto& tables = *document->analysis->document;
    while (runner.position() != goal && reason != StopReason::badNumber) {
      const bool ahead = runner.position() < goal;
      const auto op = document->program.opAt(ahead ? runner.position() : runner.position() - 1);
      const auto done = ahead ? runner.position() - from : from - runner.position();
      const auto all = ahead ? goal - from : from - goal;
      progress.at(tables.symbol(tables.boundSymbol(op).symbol).name, static_cast<double>(done) / static_cast<double>(all));
      reason = ahead ? runner.step() : runner.stepBack();
    }
    return reason;
  });
}

void DocumentController::continueForward() {
  command(tr("Run"), false, execution_->now().size,
          [](Runner& runner, const Progress& progress) { return runner.continueForward(progress); });
}

void DocumentController::continueBackward() {
  command(tr("Run back"), false, 0, [](Runner& runner, const Progress& progress) { return runner.continueBackward(progress); });
}

void DocumentController::runTo(BoundSymbolId op) {
  if (!document_) return;
  if (const auto position = document_->program.positionOf(op)) runToPosition(*position);
}

void DocumentController::runToPosition(std::size_t position) {
  command(tr("Run to cursor"), false, position,
          [position](Runner& runner, const Progress& progress) { return runner.runTo(position, progress); });
}

void DocumentController::restart() {
  command(tr("Restart"), false, 0, [](Runner& runner, const Progress&) {
    runner.restart();
    return StopReason::start;
  });
}

void DocumentController::stop() {
  worker_->cancel(this, runTag);
  worker_->cancel(this, valuesTag);
}

void DocumentController::command(const QString& title, bool walking, std::size_t goal, Command command) {
  if (!document_ || !execution_->now().available) return;
  goal_ = goal;
  auto execution = execution_->now();
  execution.running = true;
  execution.walking = walking;
  execution.error.clear();
  execution.failed = {};
  execution_->set(execution);
  worker_->cancel(this, valuesTag);  // values of a position that is being left
  Worker::Job job;
  job.tag = runTag;
  job.title = title;
  job.work = [this, slot = slot_, generation = generation_, number = ++commandNumber_, stops = stops_,
              command = std::move(command)](const Progress& progress) -> Worker::Deliver {
    // Asked for before it was known here that an earlier command stopped early: it was meant from elsewhere.
    if (slot->stops != stops) return {};
    Outcome outcome;
    outcome.number = number;
    try {
      outcome.reason = command(*slot->runner, progress);
    } catch (const Error& e) {
      outcome.reason = e.code() == ErrorCode::cancelled ? StopReason::cancelled : StopReason::error;
      if (outcome.reason == StopReason::error) outcome.error = QString::fromStdString(e.what());
    }
    if (outcome.stopped()) ++slot->stops;
    outcome.position = slot->runner->position();
    outcome.live = slot->runner->liveBytes();
    outcome.peak = slot->runner->peakBytes();
    return [this, generation, outcome] {
      if (generation == generation_) commandDone(outcome);
    };
  };
  job.failed = [this, generation = generation_, number = commandNumber_](const Error&) {
    if (generation == generation_) commandDropped(number);
  };
  worker_->post(this, std::move(job));
}

void DocumentController::commandDone(const Outcome& outcome) {
  // Commands run in order, and one that was replaced is not heard of: what came of one settles those before it. One that stopped
  // early settles those after it too, as they will not run.
  settled_ = std::max(settled_, outcome.stopped() ? commandNumber_ : outcome.number);
  stops_ += outcome.stopped();
  auto execution = execution_->now();
  execution.running = !outcome.stopped() && (settled_ < commandNumber_ || worker_->busy(this, runTag));
  if (!execution.running) goal_ = outcome.position;
  execution.position = outcome.position;
  execution.current = document_->program.opAt(outcome.position);
  execution.reason = outcome.reason;
  execution.liveBytes = outcome.live;
  execution.peakBytes = outcome.peak;
  execution.error = outcome.error;
  execution.failed = outcome.error.isEmpty() ? BoundSymbolId() : execution.current;
  if (outcome.reason == StopReason::badNumber && outcome.position > 0) execution.bad.insert(document_->program.opAt(outcome.position - 1));
  execution_->set(execution);
  if (!outcome.error.isEmpty()) Q_EMIT runFailed(outcome.error);
}

void DocumentController::commandDropped(std::uint64_t number) {
  settled_ = std::max(settled_, number);
  if (settled_ < commandNumber_ || worker_->busy(this, runTag)) return;
  auto execution = execution_->now();
  execution.running = false;
  execution.reason = StopReason::cancelled;
  goal_ = execution.position;
  execution_->set(execution);
}

bool DocumentController::toggleBreakpoint(BoundSymbolId op, QString* problem) {
  const auto target = document_ ? document_->program.executed(op) : BoundSymbolId();
  if (!target) {
    if (problem) *problem = tr("This op is not among those that run, so it takes no breakpoint");
    return false;
  }
  auto breakpoints = execution_->breakpoints();
  const bool on = !breakpoints.erase(target);
  if (on) breakpoints.insert(target);
  execution_->setBreakpoints(std::move(breakpoints));
  onRunner(breakTag + QString::number(target.index), [target, on](Runner& runner) { runner.setBreakpoint(target, on); });
  return true;
}

void DocumentController::pushBreakpoints() {
  if (execution_->breakpoints().empty()) return;
  onRunner(breakTag, [breakpoints = execution_->breakpoints()](Runner& runner) {
    for (auto op : breakpoints) runner.setBreakpoint(op, true);
  });
}

void DocumentController::setBreakOnBadNumber(bool on) {
  auto execution = execution_->now();
  execution.breakOnBadNumber = on;
  execution_->set(execution);
  onRunner(badTag, [on](Runner& runner) { runner.setBreakOnBadNumber(on); });
}

void DocumentController::onRunner(const QString& tag, std::function<void(Runner&)> change) {
  if (!slot_) return;
  Worker::Job job;
  job.tag = tag;
  job.work = [slot = slot_, change = std::move(change)](const Progress&) -> Worker::Deliver {
    if (slot->runner) change(*slot->runner);
    return {};
  };
  worker_->post(this, std::move(job));
}

void DocumentController::requestValues(BoundSymbolId op, ValueId detail) {
  if (!document_ || !op || !slot_) return;
  Worker::Job job;
  job.tag = valuesTag;
  job.title = tr("Values");
  job.replaceRunning = true;
  job.work = [this, slot = slot_, generation = generation_, document = document_->analysis->document, op,
              detail](const Progress& progress) -> Worker::Deliver {
    auto report = std::make_shared<ValueReport>();
    if (slot->runner) {
      *report = reportValues(*slot->runner, *document, op, detail, progress);
    } else {
      report->op = op;
      report->rows = valueRows(*document, op);
      for (auto& row : report->rows) row.state.reason = "the document cannot be run";
    }
    return [this, generation, report] {
      if (generation == generation_) Q_EMIT valuesReady(report);
    };
  };
  job.failed = [this, generation = generation_](const Error& error) {
    if (generation == generation_ && error.code() != ErrorCode::cancelled) Q_EMIT valuesFailed(QString::fromStdString(error.what()));
  };
  worker_->post(this, std::move(job));
}

void DocumentController::cancelValues() { worker_->cancel(this, valuesTag); }

}  // namespace retrograd::views

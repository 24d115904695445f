#include "views/session/document_controller.h"

#include <QFileInfo>
#include <utility>

#include "views/models/format.h"

namespace retrograd::views {

/// What came of a command.
struct DocumentController::Outcome {
  std::uint64_t number = 0;
  std::size_t position = 0, goal = 0;
  StopReason reason = StopReason::step;
  std::int64_t live = 0, peak = 0;
  std::optional<Breakpoint> hit;
  std::vector<std::int64_t> hits;
  QString error;

  /// Elsewhere than where it was meant to lead.
  bool stopped() const {
    return reason == StopReason::badNumber || reason == StopReason::error || reason == StopReason::cancelled ||
           (reason == StopReason::breakpoint && position != goal);
  }
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
const QString historyTag = QStringLiteral("history");

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

void DocumentController::adopt(std::shared_ptr<const Analysis> analysis, const PartitionOptions& partition) {
  if (!document_) return;
  auto request = document_->request;
  request.partition = partition;
  startOpen(request, true, std::move(analysis));
}

void DocumentController::startOpen(const OpenRequest& request, bool keepMarks, std::shared_ptr<const Analysis> ready) {
  stop();
  const auto number = ++openNumber_;
  opening_ = true;
  Q_EMIT openingChanged();
  Worker::Job job;
  job.tag = openTag;
  job.title = tr("Opening %1").arg(fileName(request.path));
  job.replaceRunning = true;
  job.work = [this, number, engine = engine_, request, keepMarks, historyBytes = historyBytes_, ready = std::move(ready)](const Progress& progress) -> Worker::Deliver {
    auto opened = std::make_shared<Opened>();
    auto analysis = ready ? ready : engine->open(request, progress);
    progress.at("listings", 0.95);
    opened->document = prepare(analysis, request, progress);
    opened->slot = std::make_shared<Slot>();
    if (!analysis->derived()) {
      opened->document->noRunReason = tr("There is no forward and backward to run: see Problems");
    } else {
      try {
        opened->slot->runner = engine->run(analysis);
        opened->slot->runner->setHistoryBytes(historyBytes);
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
  std::vector<Breakpoint> breakpoints;
  std::vector<ValueId> watches;
  if (keepMarks && document_) {
    const auto& now = *opened->document->analysis;
    breakpoints = findKeys(now, keysOf(*document_->analysis, execution_->breakpoints()));
    const auto& program = opened->document->program;
    std::erase_if(breakpoints, [&](const Breakpoint& b) { return b.where == Breakpoint::Where::op && !program.executed(b.op); });
    std::vector<ValueKey> keys;
    for (auto value : execution_->watches()) keys.push_back(keyOf(*document_->analysis, value));
    watches = findKeys(now, keys);
    std::erase_if(watches, [](ValueId value) { return !value; });
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
  execution_->set(execution);
  setBreakpoints(std::move(breakpoints));
  execution_->setWatches(std::move(watches));
  if (execution.breakOnBadNumber) setBreakOnBadNumber(true);
}

void DocumentController::leaveDocument() {
  // Ids are of one document: everyone lets go of them before another one comes.
  Q_EMIT documentAboutToChange();
  execution_->setBreakpoints({}, {});
  execution_->setWatches({});
  execution_->setBadValues({});
  values_.reset();
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

void DocumentController::step(Step step) {
  if (!document_) return;
  const auto stops = execution_->stops();
  walkTo(document_->program.steps().goal(step, goal_, [&](BoundSymbolId op) { return stops.contains(op); }));
}

void DocumentController::walkTo(std::size_t goal) {
  if (!document_) return;
  command(tr("Step"), true, goal, [goal](Runner& runner, const Progress& progress) { return runner.continueTo(goal, progress); });
}

void DocumentController::continueForward() {
  const auto end = execution_->now().size;
  command(tr("Run"), false, end, [end](Runner& runner, const Progress& progress) { return runner.continueTo(end, progress); });
}

void DocumentController::continueBackward() {
  command(tr("Run back"), false, 0, [](Runner& runner, const Progress& progress) { return runner.continueTo(0, progress); });
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

void DocumentController::pause() { worker_->cancel(this, runTag); }

void DocumentController::stop() {
  worker_->cancel(this, runTag);
  worker_->cancel(this, valuesTag);
  for (const auto& tag : questions_) worker_->cancel(this, tag);
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
  job.work = [this, slot = slot_, generation = generation_, number = ++commandNumber_, stops = stops_, goal,
              command = std::move(command)](const Progress& progress) -> Worker::Deliver {
    // Asked for before it was known here that an earlier command stopped early: it was meant from elsewhere.
    if (slot->stops != stops) return {};
    Outcome outcome;
    outcome.number = number;
    outcome.goal = goal;
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
    outcome.hits = slot->runner->breakpointHits();
    if (outcome.reason == StopReason::breakpoint) outcome.hit = slot->runner->hitBreakpoint();
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
  execution.hit = outcome.hit;
  execution.hits = outcome.hits;
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

void DocumentController::setBreakOnBadNumber(bool on) {
  auto execution = execution_->now();
  execution.breakOnBadNumber = on;
  execution_->set(execution);
  if (slot_ && slot_->runner) slot_->runner->setBreakOnBadNumber(on);
}

void DocumentController::setHistoryBytes(std::int64_t bytes) {
  historyBytes_ = bytes;
  onRunner(historyTag, [bytes](Runner& runner) -> Worker::Deliver {
    runner.setHistoryBytes(bytes);
    return {};
  });
}

void DocumentController::onRunner(const QString& tag, std::function<Worker::Deliver(Runner&)> change) {
  if (!slot_) return;
  Worker::Job job;
  job.tag = tag;
  job.work = [this, slot = slot_, generation = generation_, change = std::move(change)](const Progress&) -> Worker::Deliver {
    auto deliver = slot->runner ? change(*slot->runner) : Worker::Deliver();
    return [this, generation, deliver] {
      if (generation == generation_ && deliver) deliver();
    };
  };
  worker_->post(this, std::move(job));
}

void DocumentController::requestValues(BoundSymbolId op, ValueId detail, bool beside) {
  if (!document_ || !op || !slot_) return;
  Worker::Job job;
  job.tag = valuesTag;
  job.title = tr("Values");
  job.replaceRunning = true;
  job.work = [this, slot = slot_, generation = generation_, analysis = document_->analysis, op, detail,
              beside](const Progress& progress) -> Worker::Deliver {
    auto report = std::make_shared<ValueReport>();
    if (slot->runner) {
      *report = reportValues(*slot->runner, *analysis, op, detail, beside, progress);
    } else {
      report->op = op;
      report->rows = valueRows(*analysis->document, op);
      for (auto& row : report->rows) row.state.reason = "the document cannot be run";
    }
    return [this, generation, report] {
      if (generation != generation_) return;
      values_ = report;
      noteBadValues(*report);
      Q_EMIT valuesReady(report);
    };
  };
  job.failed = [this, generation = generation_](const Error& error) {
    if (generation == generation_ && error.code() != ErrorCode::cancelled) Q_EMIT valuesFailed(QString::fromStdString(error.what()));
  };
  worker_->post(this, std::move(job));
}

void DocumentController::cancelValues() { worker_->cancel(this, valuesTag); }

void DocumentController::ask(QObject* asker, const QString& tag, const QString& title, Question question,
                             std::function<void(const QString&)> failed) {
  if (!document_ || !slot_) return;
  if (!title.isEmpty()) questions_.insert(tag);
  Worker::Job job;
  job.tag = tag;
  job.title = title;
  job.replaceRunning = true;
  job.work = [this, asker = QPointer<QObject>(asker), slot = slot_, engine = engine_, document = document_,
              question = std::move(question)](const Progress& progress) -> Worker::Deliver {
    auto answer = question({*document, *engine, slot->runner.get()}, progress);
    return [this, asker, generation = document->generation, answer] {
      Q_EMIT askingChanged();
      if (generation == generation_ && asker && answer) answer();
    };
  };
  job.failed = [this, asker = QPointer<QObject>(asker), generation = generation_, failed = std::move(failed)](const Error& error) {
    Q_EMIT askingChanged();
    if (generation == generation_ && asker && failed)
      failed(error.code() == ErrorCode::cancelled ? QString() : QString::fromStdString(error.what()));
  };
  worker_->post(this, std::move(job));
  Q_EMIT askingChanged();
}

void DocumentController::cancelQuestion(const QString& tag) { worker_->cancel(this, tag); }

bool DocumentController::asking() const {
  auto* owner = const_cast<DocumentController*>(this);  // a name in the queue, not followed
  return std::any_of(questions_.begin(), questions_.end(), [&](const QString& tag) { return worker_->busy(owner, tag); });
}

}  // namespace retrograd::views

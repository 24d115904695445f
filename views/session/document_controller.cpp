#include "views/session/document_controller.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <utility>

#include "core/split/op_cost.h"
#include "views/text/format.h"

namespace retrograd::views {

/// What an open brings back.
struct DocumentController::Opened {
  std::shared_ptr<OpenDocument> document;
  std::shared_ptr<RunSlot> slot;
};

namespace {

const QString openTag = QStringLiteral("open");

QString fileName(const std::string& path) { return QFileInfo(toQt(path)).fileName(); }

FileKind kindOf(const ModelFile& file) {
  switch (file.format) {
    case Format::session: return FileKind::session;
    case Format::recording: return FileKind::step;
    case Format::job: return FileKind::job;
    default: return FileKind::model;
  }
}

/// Indexes an analysis for the listings; on the worker, as it walks every op.
std::shared_ptr<OpenDocument> prepare(std::shared_ptr<const Analysis> analysis, const OpenRequest& request,
                                      const Progress& progress) {
  auto document = std::make_shared<OpenDocument>();
  document->request = request;
  document->kind = kindOf(analysis->file);
  for (auto kind : traceKinds) document->traces[kind] = indexTrace(analysis, kind, progress);
  document->saved = savedValues(*analysis);
  document->program = Program(analysis);
  document->intended = IntendedInfinities(*analysis);
  document->seconds = estimatedSeconds(*analysis->document, analysis->joint);
  document->analysis = std::move(analysis);
  return document;
}

}  // namespace

QString name(FileKind kind) {
  static const EnumArray<FileKind, QString, 4> names{QStringLiteral("model"), QStringLiteral("step"),
                                                     QStringLiteral("job"), QStringLiteral("session")};
  return names[kind];
}

DocumentController::DocumentController(std::shared_ptr<Worker> worker, std::shared_ptr<Engine> engine,
                                       ExecutionState* execution, QObject* parent)
    : QObject(parent),
      state_{this, std::move(worker), std::move(engine), execution, {}, {}},
      run_(state_, this),
      marks_(state_, this),
      questions_(state_, this),
      ahead_(state_, this) {
  connect(&run_, &RunControl::leavesPosition, &questions_, &Questions::cancelValues);
  connect(&questions_, &Questions::valuesReady, &ahead_, &RunAhead::refresh);
  connect(&questions_, &Questions::valuesReady, &marks_,
          [this](const std::shared_ptr<const ValueReport>& report) { marks_.noteBadValues(*report); });
}

DocumentController::~DocumentController() {
  disconnect(&edits_, nullptr, nullptr, nullptr);  // it says that it is empty when it goes
  state_.worker->cancelAll(this);
  discard(std::exchange(state_.slot, nullptr));
}

void DocumentController::reload() {
  if (document()) startOpen(document()->request, true);
}

/// One choice of what is saved instead of another.
class DocumentController::Adoption : public QUndoCommand {
 public:
  struct Choice {
    std::shared_ptr<const Analysis> analysis;  ///< null: derived when it is wanted
    PartitionOptions partition;
  };
  Adoption(DocumentController* controller, Choice from, Choice to, bool isThere, const QString& what)
      : QUndoCommand(what),
        controller_(controller),
        from_(std::move(from)),
        to_(std::move(to)),
        file_(controller->document() ? controller->document()->file : FileStamp()),
        isThere_(isThere) {}
  void redo() override {
    if (!std::exchange(isThere_, false)) goTo(to_);
  }
  void undo() override { goTo(from_); }

 private:
  /// What was derived before the file changed is derived anew.
  void goTo(const Choice& choice) const {
    const auto& open = controller_->document();
    controller_->goOn(open && open->file == file_ ? choice.analysis : nullptr, choice.partition);
  }

  DocumentController* controller_;
  Choice from_, to_;
  FileStamp file_;
  bool isThere_;  ///< what is open has it
};

void DocumentController::adopt(std::shared_ptr<const Analysis> analysis, const QString& what) {
  if (!document()) return;
  const auto partition = analysis->request.partition;
  edits_.push(new Adoption(this, {document()->analysis, document()->analysis->request.partition},
                           {std::move(analysis), partition}, false, what));
}

QString DocumentController::adopted() const {
  const auto* newest = edits_.index() > 0 ? edits_.command(edits_.index() - 1) : nullptr;
  return dynamic_cast<const Adoption*>(newest) ? newest->text() : QString();
}

void DocumentController::goOn(std::shared_ptr<const Analysis> analysis, const PartitionOptions& partition) {
  if (!document()) return;
  auto request = document()->request;
  request.partition = partition;
  startOpen(request, true, analysis, analysis ? nullptr : document()->analysis);
}

/// Of a document that is about to be published.
void DocumentController::beginEdits(const OpenDocument& opened) {
  if (document() && document()->request.path == opened.request.path) return;
  edits_.clear();
  const auto& partition = opened.analysis->request.partition;
  if (opened.kind == FileKind::session && partition != PartitionOptions())
    edits_.push(new Adoption(this, {}, {opened.analysis, partition}, true, tr("What the session has adopted")));
}

void DocumentController::startOpen(const OpenRequest& request, bool keepMarks, std::shared_ptr<const Analysis> ready,
                                   std::shared_ptr<const Analysis> base) {
  stop();
  const auto number = ++openNumber_;
  opening_ = true;
  openingName_ = fileName(request.path);
  Q_EMIT openingChanged();
  Worker::Job job;
  job.tag = openTag;
  job.title = tr("Opening %1").arg(fileName(request.path));
  job.replaceRunning = true;
  const auto readAlready = (ready || base) && document() ? std::optional(document()->file) : std::nullopt;
  job.work = [this, number, engine = state_.engine, request, keepMarks, historyBytes = run_.historyBytes(),
              ready = std::move(ready), base = std::move(base), readAlready,
              owner = QPointer(this)](const Progress& progress) -> Worker::Deliver {
    auto opened = std::make_shared<Opened>();
    const auto file =
        readAlready ? *readAlready : stampOf(toQt(request.path));  // before it is read: a change meanwhile is seen
    auto analysis = ready  ? ready
                    : base ? engine->whatIf(*base, *request.partition, {}, progress).analysis
                           : engine->open(request, progress, [&](const ModelFile& read) { tell(owner, number, read); });
    progress.at("listings", 0.95);
    opened->document = prepare(analysis, request, progress);
    opened->document->file = file;
    opened->slot = std::make_shared<RunSlot>();
    if (!analysis->derived()) {
      opened->document->noRunReason = tr("There is no forward and backward to run: see Problems");
    } else {
      try {
        opened->slot->runner = engine->run(analysis);
        opened->slot->runner->setHistoryBytes(historyBytes);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::cancelled) throw;
        opened->document->noRunReason = toQt(error.what());
      } catch (const std::bad_alloc& error) {
        opened->document->noRunReason = toQt(messageOf(error));
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
    if (error.code() != ErrorCode::cancelled) Q_EMIT openFailed(toQt(error.what()), path);
  };
  state_.worker->post(this, std::move(job));
}

/// From the worker; heard of on the window's thread, unless something else is opened by then.
void DocumentController::tell(const QPointer<DocumentController>& owner, std::uint64_t number, const ModelFile& read) {
  auto first = firstLines(read);
  auto* application = QCoreApplication::instance();
  if (first.lines.empty() || !application) return;
  const auto deliver = [owner, number, first = std::move(first)] {
    if (owner && owner->opening_ && number == owner->openNumber_) Q_EMIT owner->computationRead(first);
  };
  QMetaObject::invokeMethod(application, deliver, Qt::QueuedConnection);
}

void DocumentController::publish(const std::shared_ptr<Opened>& opened, bool keepMarks) {
  auto kept = keepMarks ? marks_.keptIn(*opened->document) : Marks::Kept();
  beginEdits(*opened->document);
  leaveDocument();
  state_.slot = opened->slot;
  state_.document = opened->document;
  run_.reset();
  auto execution = state_.execution->now();
  execution.available = document()->noRunReason.isEmpty();
  execution.unavailableReason = document()->noRunReason;
  execution.size = document()->program.size();
  execution.forwardSize = document()->program.forwardSize();
  execution.current = document()->program.opAt(0);
  Q_EMIT documentChanged();
  state_.execution->set(execution);
  marks_.restore(std::move(kept));
  ahead_.begin();
  if (execution.breakOnBadNumber) run_.setBreakOnBadNumber(true);
}

void DocumentController::leaveDocument() {
  // Ids are of one document: everyone lets go of them before another one comes.
  Q_EMIT documentAboutToChange();
  marks_.clear();
  questions_.forget();
  ahead_.forget();
  Execution execution;
  execution.breakOnBadNumber = state_.execution->now().breakOnBadNumber;
  state_.execution->set(execution);
  discard(std::exchange(state_.slot, nullptr));
}

void DocumentController::cancelOpen() {
  if (!opening_) return;
  ++openNumber_;
  opening_ = false;
  state_.worker->cancel(this, openTag);
  Q_EMIT openingChanged();
}

void DocumentController::close() {
  cancelOpen();
  state_.worker->cancelAll(this);
  leaveDocument();
  edits_.clear();
  state_.document.reset();
  Q_EMIT documentChanged();
}

void DocumentController::stop() {
  run_.pause();
  questions_.cancelAll();
  ahead_.cancel();
}

void DocumentController::discard(std::shared_ptr<RunSlot> slot) {
  if (!slot) return;
  const auto destroy = [slot = std::move(slot)](const Progress&) -> Worker::Deliver {
    slot->runner.reset();
    return {};
  };
  state_.worker->post(nullptr, {.work = destroy});
}

}  // namespace retrograd::views

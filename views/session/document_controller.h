#pragma once
#include <QObject>
#include <QSet>
#include <array>
#include <functional>
#include <memory>

#include "views/models/trace_index.h"
#include "views/session/engine.h"
#include "views/session/execution_state.h"
#include "views/session/op_key.h"
#include "views/session/program.h"
#include "views/session/value_report.h"
#include "views/session/worker.h"

namespace retrograd::views {

/// An open document as the views see it; never changes once published.
struct OpenDocument {
  OpenRequest request;
  std::shared_ptr<const Analysis> analysis;
  std::array<std::shared_ptr<const TraceIndex>, 4> traces;  ///< by TraceKind
  SavedValues saved;
  Program program;
  QString noRunReason;  ///< why it cannot be run; empty when it can
  std::uint64_t generation = 0;

  const TraceIndex& trace(TraceKind kind) const { return *traces[static_cast<std::size_t>(kind)]; }
};

/// What a question about the open document may use; on the worker.
struct Bench {
  const OpenDocument& document;
  Engine& engine;
  Runner* runner;  ///< null where the document cannot be run
};

/// Opens, reloads, runs and asks, all on the worker, and publishes what comes back. One a window.
///
/// Every answer bears the generation of the document it is for; one for an older document is dropped. Nothing here waits.
class DocumentController : public QObject {
  Q_OBJECT

 public:
  DocumentController(std::shared_ptr<Worker> worker, std::shared_ptr<Engine> engine, ExecutionState* execution, QObject* parent = nullptr);
  ~DocumentController() override;

  /// Null while nothing is open.
  const std::shared_ptr<const OpenDocument>& document() const { return document_; }
  Worker& worker() { return *worker_; }
  bool opening() const { return opening_; }

  /// Opens in place of what is open, which stays until the new one is there and for good if that fails.
  void open(const OpenRequest& request);
  /// Reads the file anew with the same inputs; breakpoints are found again by key.
  void reload();
  /// Opens the file that is open with other inputs; breakpoints are kept.
  void reopen(const OpenRequest& request) { startOpen(request, true); }
  /// Goes on with an analysis of the same file under another partition, as whatIf() made it; breakpoints and watches are kept.
  void adopt(std::shared_ptr<const Analysis> analysis, const PartitionOptions& partition);
  void cancelOpen();
  void close();

  /// Steps asked for while others run add up to one goal.
  void step(Step step);
  void continueForward();
  void continueBackward();
  /// To the position where `op` runs, in either direction.
  void runTo(BoundSymbolId op);
  void runToPosition(std::size_t position);
  void restart();
  /// Stops the run between two ops; it can go on from there.
  void pause();
  /// Stops what runs, questions included; takes effect between ops.
  void stop();

  /// Breakpoints: a run that goes on heeds each change before its next op.
  /// Takes away the breakpoints at this op, or sets one. Returns false, and says why in `problem`, where the op never runs.
  bool toggleBreakpoint(BoundSymbolId op, QString* problem = nullptr);
  /// Sets one from words, as parseBreakpoint() reads them; `done` is told why not, or an empty text.
  void addBreakpoint(const QString& words, std::function<void(const QString&)> done);
  void removeBreakpoint(std::size_t index);
  void enableBreakpoint(std::size_t index, bool on);
  void setBreakOnBadNumber(bool on);
  /// What stepping back may keep, of this document and those opened later.
  void setHistoryBytes(std::int64_t bytes);

  /// Values of an op's operands and outputs at the present position, answered by valuesReady(). A newer request replaces an older.
  /// `beside`: with the gradient of `detail`, or what it is the gradient of.
  void requestValues(BoundSymbolId op, ValueId detail, bool beside = false);
  void cancelValues();
  /// The last answer; null where none was given since the document was opened. May be of an earlier position.
  const std::shared_ptr<const ValueReport>& values() const { return values_; }
  /// Writes what a value holds at the present position to a .npy or .safetensors file; `done` is told why not, or an empty text.
  void saveValue(ValueId value, const QString& path, std::function<void(const QString&)> done);
  /// Puts the number into every element of a value that is present; runFailed() says why where it is not.
  void fillValue(ValueId value, double number);

  void addWatch(ValueId value);
  void removeWatch(ValueId value);

  /// A question about the open document, answered on the worker. What `question` returns is called here, unless another document is
  /// open by then or `asker` is gone. A newer question of the tag takes the place of an older one, running or not; stop() ends it. With a
  /// title it shows in the status bar. `failed` hears why there is no answer; an empty text says that it was cancelled.
  using Question = std::function<Worker::Deliver(const Bench&, const Progress&)>;
  void ask(QObject* asker, const QString& tag, const QString& title, Question question, std::function<void(const QString&)> failed = {});
  void cancelQuestion(const QString& tag);
  /// A question with a title is being answered or waits.
  bool asking() const;

 Q_SIGNALS:
  /// The open document is about to go: ids of its ops and values are good for the last time.
  void documentAboutToChange();
  /// A document was opened, reloaded or closed.
  void documentChanged();
  void openingChanged();
  void openFailed(const QString& message, const QString& path);
  void runFailed(const QString& message);
  void valuesReady(const std::shared_ptr<const retrograd::views::ValueReport>& report);
  void valuesFailed(const QString& message);
  void askingChanged();

 private:
  /// The runner of one document. Made, used and destroyed on the worker, since tensors hang on it; here it is only told what to stop at.
  struct Slot {
    std::unique_ptr<Runner> runner;
    std::uint64_t stops = 0;  ///< how often a command ended early: by a bad number, an error or the user
  };
  struct Opened;
  struct Outcome;
  using Command = std::function<StopReason(Runner&, const Progress&)>;

  /// Marks are breakpoints and watches. With `ready` nothing is read.
  void startOpen(const OpenRequest& request, bool keepMarks, std::shared_ptr<const Analysis> ready = {});
  void publish(const std::shared_ptr<Opened>& opened, bool keepMarks);
  void walkTo(std::size_t goal);
  void command(const QString& title, bool walking, std::size_t goal, Command command);
  void commandDone(const Outcome& outcome);
  void commandDropped(std::uint64_t number);
  void leaveDocument();
  void setBreakpoints(std::vector<Breakpoint> breakpoints);
  void noteBadValues(const ValueReport& report);
  /// Changes the runner; what `change` returns is called here while the document is open.
  void onRunner(const QString& tag, std::function<Worker::Deliver(Runner&)> change);
  /// Destroys a runner on the worker.
  void discard(std::shared_ptr<Slot> slot);

  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Engine> engine_;
  ExecutionState* execution_;
  std::shared_ptr<const OpenDocument> document_;
  std::shared_ptr<const ValueReport> values_;
  QSet<QString> questions_;     ///< tags of questions with a title
  std::shared_ptr<Slot> slot_;  ///< holds the runner
  std::int64_t historyBytes_ = SessionOptions().historyBytes;
  std::uint64_t generation_ = 0;
  std::uint64_t openNumber_ = 0;  ///< of the newest open; answers of older ones are dropped
  bool opening_ = false;
  std::uint64_t commandNumber_ = 0;  ///< of the newest command
  std::uint64_t settled_ = 0;        ///< newest command of which it is known what came of it
  std::uint64_t stops_ = 0;          ///< Slot::stops as far as they were heard of
  std::size_t goal_ = 0;             ///< where the steps asked for so far lead to
};

}  // namespace retrograd::views

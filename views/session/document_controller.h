#pragma once
#include <QObject>
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
  void cancelOpen();
  void close();

  void stepInto();
  void stepIntoBack();
  void stepOver();
  void stepOverBack();
  void continueForward();
  void continueBackward();
  /// To the position where `op` runs, in either direction.
  void runTo(BoundSymbolId op);
  void runToPosition(std::size_t position);
  void restart();
  /// Stops what runs; takes effect between ops.
  void stop();

  /// Returns false, and says why in `problem`, where the op never runs.
  bool toggleBreakpoint(BoundSymbolId op, QString* problem = nullptr);
  void setBreakOnBadNumber(bool on);

  /// Values of an op's operands and outputs at the present position, answered by valuesReady(). A newer request replaces an older.
  void requestValues(BoundSymbolId op, ValueId detail);
  void cancelValues();

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

 private:
  struct Opened;
  struct Slot;
  struct Outcome;
  using Command = std::function<StopReason(Runner&, const Progress&)>;

  void startOpen(const OpenRequest& request, bool keepMarks);
  void publish(const std::shared_ptr<Opened>& opened, bool keepMarks);
  void walkTo(std::size_t goal);
  void command(const QString& title, bool walking, std::size_t goal, Command command);
  void commandDone(const Outcome& outcome);
  void commandDropped(std::uint64_t number);
  void leaveDocument();
  void pushBreakpoints();
  void onRunner(const QString& tag, std::function<void(Runner&)> change);
  /// Destroys a runner on the worker.
  void discard(std::shared_ptr<Slot> slot);

  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Engine> engine_;
  ExecutionState* execution_;
  std::shared_ptr<const OpenDocument> document_;
  std::shared_ptr<Slot> slot_;  ///< holds the runner; followed on the worker only
  std::uint64_t generation_ = 0;
  std::uint64_t openNumber_ = 0;  ///< of the newest open; answers of older ones are dropped
  bool opening_ = false;
  std::uint64_t commandNumber_ = 0;  ///< of the newest command
  std::uint64_t settled_ = 0;        ///< newest command of which it is known what came of it
  std::uint64_t stops_ = 0;          ///< Slot::stops as far as they were heard of
  std::size_t goal_ = 0;             ///< where the steps asked for so far lead to
};

}  // namespace retrograd::views

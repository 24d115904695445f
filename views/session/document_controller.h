#pragma once
#include <QObject>
#include <QPointer>
#include <QUndoStack>
#include <memory>

#include "views/session/marks.h"
#include "views/session/questions.h"
#include "views/session/run_ahead.h"
#include "views/session/run_control.h"
#include "views/text/first_lines.h"

namespace retrograd::views {

/// The open document of a window: opens, reloads and closes it on the worker, and publishes it. What is done with
/// the document is the business of its parts: run() runs it, marks() has its breakpoints and watches, questions() asks
/// about it. Nothing here waits.
class DocumentController : public QObject {
  Q_OBJECT

 public:
  DocumentController(std::shared_ptr<Worker> worker, std::shared_ptr<Engine> engine, ExecutionState* execution,
                     QObject* parent = nullptr);
  ~DocumentController() override;

  /// Null while nothing is open.
  const std::shared_ptr<const OpenDocument>& document() const { return state_.document; }
  Worker& worker() { return *state_.worker; }
  bool opening() const { return opening_; }
  /// The name of the file that is being opened.
  const QString& openingName() const { return openingName_; }

  RunControl& run() { return run_; }
  Marks& marks() { return marks_; }
  Questions& questions() { return questions_; }
  RunAhead& ahead() { return ahead_; }

  /// Opens instead of what is open, which stays until the new one is there and for good if that fails.
  void open(const OpenRequest& request) { startOpen(request, false); }
  /// Reads the file again with the same inputs; breakpoints are found again by key.
  void reload();
  /// Opens the file that is open with other inputs; breakpoints are kept.
  void reopen(const OpenRequest& request) { startOpen(request, true); }
  /// Goes on with an analysis of the same file under another partition, as whatIf() made it; breakpoints and watches
  /// are kept. `what` names it in edits().
  void adopt(std::shared_ptr<const Analysis> analysis, const QString& what);
  /// All that was adopted for the open file, what is saved as well as cuts, from oldest to newest. A session begins
  /// with what was adopted before it was written, as one step. Empty for another file.
  QUndoStack& edits() { return edits_; }
  /// The adoption that edits().undo() takes back; empty where that is something else.
  QString adopted() const;
  void cancelOpen();
  void close();
  /// Stops what runs, questions included; takes effect between ops.
  void stop();

 Q_SIGNALS:
  /// The open document is about to go: ids of its ops and values are good for the last time.
  void documentAboutToChange();
  /// A document was opened, reloaded or closed.
  void documentChanged();
  void openingChanged();
  /// A long computation was read (FirstLines); the rest is being derived from it.
  void computationRead(const retrograd::views::FirstLines& first);
  void openFailed(const QString& message, const QString& path);

 private:
  struct Opened;
  class Adoption;

  /// With `ready` nothing is read; with `base` that analysis is derived again for the request's partition.
  void startOpen(const OpenRequest& request, bool keepMarks, std::shared_ptr<const Analysis> ready = {},
                 std::shared_ptr<const Analysis> base = {});
  /// Without an analysis one is derived.
  void goOn(std::shared_ptr<const Analysis> analysis, const PartitionOptions& partition);
  void beginEdits(const OpenDocument& opened);
  static void tell(const QPointer<DocumentController>& owner, std::uint64_t number, const ModelFile& read);
  void publish(const std::shared_ptr<Opened>& opened, bool keepMarks);
  void leaveDocument();
  /// Destroys a runner on the worker.
  void discard(std::shared_ptr<RunSlot> slot);

  OpenState state_;
  QUndoStack edits_;
  RunControl run_;
  Marks marks_;
  Questions questions_;
  RunAhead ahead_;
  std::uint64_t openNumber_ = 0;  ///< of the newest open; answers of older ones are dropped
  bool opening_ = false;
  QString openingName_;
};

}  // namespace retrograd::views

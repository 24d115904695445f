#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <memory>

#include "views/session/open_document.h"
#include "views/text/run_numbers.h"

namespace retrograd::views {

/// Runs the open document apart from its position, so that values and numbers of every line are known: a small one by
/// itself when it is opened, any when it is asked for. It runs in slices, between which the worker does what a person
/// asked for. Ops that the session runs count too. Nothing here waits.
class RunAhead : public QObject {
  Q_OBJECT

 public:
  RunAhead(OpenState& state, QObject* parent);
  ~RunAhead() override;

  RunNumbers& numbers() { return numbers_; }
  /// Whether documents whose run is estimated under two seconds run when they are opened. Such a run ends after four
  /// seconds and takes a quarter of the free memory at most.
  void setRunsOnOpen(bool on) { runsOnOpen_ = on; }
  bool runsOnOpen() const { return runsOnOpen_; }
  /// Runs what is not known yet to the end, however long it takes; cancel() and DocumentController::stop() end it.
  void runAll();
  void cancel();
  /// A run to the end goes on.
  bool running() const { return running_; }
  /// What the values kept for this may take, of this document and those opened later.
  void setKeptBytes(std::int64_t bytes);

  /// Has the numbers follow what ran meanwhile.
  void refresh();
  /// The document was opened, or is about to go.
  void begin();
  void forget();

 Q_SIGNALS:
  void changed();
  /// Why a run that was asked for ended before its end.
  void failed(const QString& message);

 private:
  enum class Why { onOpen, asked };
  struct Listener;

  void slice(Why why);
  struct Slice;
  void sliceDone(Why why, const Slice& slice);
  void end();

  OpenState& state_;
  RunNumbers numbers_;
  std::shared_ptr<Listener> listener_;  ///< hears of news on the worker, for the present document
  bool runsOnOpen_ = false, running_ = false;
  std::int64_t keptBytes_ = std::int64_t{2} << 30;
  QElapsedTimer time_;
};

}  // namespace retrograd::views

#pragma once
#include <QObject>
#include <functional>

#include "views/session/open_document.h"

namespace retrograd::views {

/// Runs the open document, forwards and back, on the worker, and writes where execution is to the ExecutionState.
/// Nothing here waits.
class RunControl : public QObject {
  Q_OBJECT

 public:
  RunControl(OpenState& state, QObject* parent);

  /// Steps asked for while others run add up to one goal.
  void step(Step step);
  void continueForward() { command(tr("Run"), false, state_.execution->now().size, &Runner::continueTo); }
  void continueBackward() { command(tr("Run back"), false, 0, &Runner::continueTo); }
  /// To the position where `op` runs, in either direction, or to the first breakpoint on the way.
  void runTo(BoundSymbolId op);
  /// Past all breakpoints.
  void runToPosition(std::size_t position) { command(tr("Run to cursor"), false, position, &Runner::runTo); }
  void restart();
  /// Stops the run between two ops; it can go on from there.
  void pause();
  void setBreakOnBadNumber(bool on);
  /// What stepping back may keep, of this document and those opened later.
  void setHistoryBytes(std::int64_t bytes);
  std::int64_t historyBytes() const { return historyBytes_; }

  /// Another document is open: execution is at its start.
  void reset();

 Q_SIGNALS:
  /// A command ended with this error.
  void failed(const QString& message);
  /// A command is on its way: what is asked of the present position is no longer of use.
  void leavesPosition();

 private:
  struct Outcome;
  using Command = std::function<StopReason(Runner&, std::size_t goal, const Progress&)>;

  void command(const QString& title, bool walking, std::size_t goal, Command command);
  void commandDone(const Outcome& outcome);
  void commandDropped(std::uint64_t number);

  OpenState& state_;
  std::int64_t historyBytes_ = SessionOptions().historyBytes;
  std::uint64_t commandNumber_ = 0;  ///< of the newest command
  std::uint64_t settled_ = 0;        ///< newest command of which it is known what came of it
  std::uint64_t stops_ = 0;          ///< RunSlot::stops as far as they were heard of
  std::size_t goal_ = 0;             ///< where the steps asked for so far lead to
};

}  // namespace retrograd::views

#pragma once
#include <QObject>
#include <QString>
#include <set>

#include "core/debug/session.h"

namespace retrograd::views {

/// Where execution stands, as one immutable picture.
struct Execution {
  bool available = false;     ///< the open document can be run
  QString unavailableReason;  ///< why not; for tooltips
  std::size_t position = 0;   ///< ops [0, position) of the program have run
  std::size_t size = 0;
  std::size_t forwardSize = 0;  ///< the border: positions from here on run in the backward
  bool running = false;
  bool walking = false;   ///< running, but by steps: more steps may be asked for
  BoundSymbolId current;  ///< runs next; none at the end
  StopReason reason = StopReason::start;
  QString error;                ///< of the last command, empty if it went well
  BoundSymbolId failed;         ///< op that failed, for the gutter
  std::set<BoundSymbolId> bad;  ///< ops after which execution stopped for a NaN or Inf
  bool breakOnBadNumber = false;
  std::int64_t liveBytes = 0;
  std::int64_t peakBytes = 0;
};

/// Execution and breakpoints; views subscribe to it. Written by the DocumentController alone.
class ExecutionState : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  const Execution& now() const { return now_; }
  void set(Execution execution) {
    now_ = std::move(execution);
    Q_EMIT changed();
  }
  const std::set<BoundSymbolId>& breakpoints() const { return breakpoints_; }
  bool hasBreakpoint(BoundSymbolId op) const { return breakpoints_.contains(op); }
  void setBreakpoints(std::set<BoundSymbolId> ops) {
    breakpoints_ = std::move(ops);
    Q_EMIT breakpointsChanged();
  }

 Q_SIGNALS:
  void changed();
  void breakpointsChanged();

 private:
  Execution now_;
  std::set<BoundSymbolId> breakpoints_;
};

}  // namespace retrograd::views

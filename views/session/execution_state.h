#pragma once
#include <QObject>
#include <QString>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/torch/session/session.h"

namespace retrograd::views {

/// Where the last command ended, and how.
struct Stop {
  std::size_t position = 0;  ///< ops [0, position) of the program have run
  StopReason reason = StopReason::start;
  QString error;                   ///< empty if it went well
  std::optional<Breakpoint> hit;   ///< that it stopped at
  std::vector<std::int64_t> hits;  ///< in this run, by breakpoint; may be shorter than their list
  std::int64_t liveBytes = 0;
  std::int64_t peakBytes = 0;
};

/// Where execution is, as one immutable picture.
struct Execution : Stop {
  bool available = false;     ///< the open document can be run
  QString unavailableReason;  ///< why not; for tooltips
  std::size_t size = 0;
  std::size_t forwardSize = 0;  ///< the border: positions from here on run in the backward
  bool running = false;
  bool walking = false;         ///< running, but by steps: more steps may be asked for
  BoundSymbolId current;        ///< runs next; none at the end
  BoundSymbolId failed;         ///< op that failed, for the gutter
  std::set<BoundSymbolId> bad;  ///< ops after which execution stopped for a NaN or Inf
  bool breakOnBadNumber = false;
};

/// How a breakpoint at one op shows next to it.
enum class BreakpointMark : std::uint8_t { none, disabled, conditional, always };

/// Execution, breakpoints and watches; views subscribe to it. Written by the owners of the open document alone:
/// DocumentController, RunControl (execution) and Marks (breakpoints, watches, bad values).
class ExecutionState : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  const Execution& now() const { return now_; }
  void set(Execution execution) {
    now_ = std::move(execution);
    Q_EMIT changed();
  }
  /// In the order in which they were made.
  const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
  /// The ops that a breakpoint is at by itself; those of a kind, a module or anywhere are not among them.
  const std::map<BoundSymbolId, BreakpointMark>& marks() const { return marks_; }
  BreakpointMark mark(BoundSymbolId op) const {
    const auto it = marks_.find(op);
    return it == marks_.end() ? BreakpointMark::none : it->second;
  }
  bool hasBreakpoint(BoundSymbolId op) const { return mark(op) != BreakpointMark::none; }
  /// Ops before which a run stops whatever comes.
  std::set<BoundSymbolId> stops() const;
  void setBreakpoints(std::vector<Breakpoint> breakpoints, std::map<BoundSymbolId, BreakpointMark> marks);

  /// Values to show after each stop, in the order in which they were chosen.
  const std::vector<ValueId>& watches() const { return watches_; }
  void setWatches(std::vector<ValueId> values);

  /// Values in which a NaN or Inf was seen and not seen to be gone.
  const std::set<ValueId>& badValues() const { return badValues_; }
  void setBadValues(std::set<ValueId> values);

 Q_SIGNALS:
  void changed();
  void breakpointsChanged();
  void watchesChanged();
  void badValuesChanged();

 private:
  Execution now_;
  std::vector<Breakpoint> breakpoints_;
  std::map<BoundSymbolId, BreakpointMark> marks_;
  std::vector<ValueId> watches_;
  std::set<ValueId> badValues_;
};

}  // namespace retrograd::views

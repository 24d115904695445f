#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/debug/breakpoint.h"

namespace retrograd {

/// The breakpoints of a run: which it stops at and how often each was met. set() may be called by any thread while the run goes on, which then heeds
/// it before its next op; all else belongs to the thread that runs.
class RunBreakpoints {
 public:
  explicit RunBreakpoints(const Analysis& analysis) : analysis_(analysis) {}

  /// Replaces those set before. One that was there already, enabled or not, keeps its hits.
  void set(std::vector<Breakpoint> breakpoints);

  /// Whether one without a condition on outputs stops before `op`. Counts hits.
  bool stopBefore(BoundSymbolId op);
  /// Whether one with a condition stops after `op`; `meets` tells of what the op has made. Counts hits.
  bool stopAfter(BoundSymbolId op, const std::function<bool(const Breakpoint&)>& meets);

  /// What the last question answered with yes found; none after one answered with no.
  const std::optional<BreakpointHit>& hit() const { return hit_; }
  void forgetHit() { hit_.reset(); }
  /// By breakpoint, those let pass included.
  const std::vector<std::int64_t>& hits();
  void forgetHits();

 private:
  void takeOver();
  bool stop(BoundSymbolId op, bool after, const std::function<bool(const Breakpoint&)>& meets);

  const Analysis& analysis_;
  std::vector<Breakpoint> breakpoints_;
  std::vector<std::int64_t> hits_;
  std::optional<BreakpointHit> hit_;
  std::atomic<bool> changed_ = false;
  std::mutex mutex_;
  std::vector<Breakpoint> next_;  ///< guarded by `mutex_`
};

}  // namespace retrograd

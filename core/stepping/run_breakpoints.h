#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/stepping/breakpoint.h"

namespace retrograd {

/// The breakpoints of a run: which it stops at and how often each was met. set() may be called by any thread while the
/// run goes on, which then heeds it before its next op; all else belongs to the thread that runs.
class RunBreakpoints {
 public:
  explicit RunBreakpoints(const Analysis& analysis) : analysis_(analysis) {}

  /// Replaces those set before. One that was there already, enabled or not, keeps its hits.
  void set(std::vector<Breakpoint> breakpoints);

  /// Whether a run stops between two ops: a breakpoint with a condition on outputs after `ran`, which `meets` looks at,
  /// or one without before `next`. Either id may be invalid. Counts a hit for each breakpoint that is met, so that
  /// those at one place do not hide each other.
  bool stopBetween(BoundSymbolId ran, BoundSymbolId next, const std::function<bool(const Breakpoint&)>& meets);

  /// The first that stopped at the last place, those with conditions before the others; nullopt where none did.
  const std::optional<BreakpointHit>& hit() const { return hit_; }
  void forgetHit() { hit_.reset(); }
  /// By breakpoint, those let pass included.
  const std::vector<std::int64_t>& hits();
  void forgetHits();

 private:
  void takeOver();
  void countHits(BoundSymbolId op, bool after, const std::function<bool(const Breakpoint&)>& meets);

  const Analysis& analysis_;
  std::vector<Breakpoint> breakpoints_;
  std::vector<std::int64_t> hits_;
  std::optional<BreakpointHit> hit_;
  std::atomic<bool> changed_ = false;
  std::mutex mutex_;
  std::vector<Breakpoint> next_;  ///< guarded by `mutex_`
};

}  // namespace retrograd

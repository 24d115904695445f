#include "core/stepping/run_breakpoints.h"

namespace retrograd {
namespace {

bool sameButForEnabled(Breakpoint a, const Breakpoint& b) {
  a.enabled = b.enabled;
  return a == b;
}

}  // namespace

void RunBreakpoints::set(std::vector<Breakpoint> breakpoints) {
  const std::lock_guard lock(mutex_);
  next_ = std::move(breakpoints);
  changed_ = true;
}

void RunBreakpoints::takeOver() {
  if (!changed_) return;
  std::vector<Breakpoint> next;
  {
    const std::lock_guard lock(mutex_);
    next = std::move(next_);
    changed_ = false;
  }
  std::vector<std::int64_t> hits(next.size(), 0);
  std::vector<char> taken(breakpoints_.size(), 0);  // of two that are alike, each keeps its own
  for (std::size_t i = 0; i < next.size(); ++i)
    for (std::size_t k = 0; k < breakpoints_.size(); ++k)
      if (!taken[k] && sameButForEnabled(next[i], breakpoints_[k])) {
        hits[i] = hits_[k];
        taken[k] = 1;
        break;
      }
  breakpoints_ = std::move(next);
  hits_ = std::move(hits);
}

bool RunBreakpoints::stopBetween(BoundSymbolId ran, BoundSymbolId next,
                                 const std::function<bool(const Breakpoint&)>& meets) {
  takeOver();
  hit_.reset();
  if (ran) countHits(ran, true, meets);
  if (next) countHits(next, false, [](const Breakpoint&) { return true; });
  return hit_.has_value();
}

void RunBreakpoints::countHits(BoundSymbolId op, bool after, const std::function<bool(const Breakpoint&)>& meets) {
  for (std::size_t i = 0; i < breakpoints_.size(); ++i) {
    const auto& breakpoint = breakpoints_[i];
    if (!breakpoint.enabled || looksAtOutputs(breakpoint) != after || !concerns(analysis_, breakpoint, op) ||
        !meets(breakpoint))
      continue;
    const bool stops = hits_[i]++ >= breakpoint.skip;
    if (stops && !hit_) hit_ = {i, breakpoint};
  }
}

const std::vector<std::int64_t>& RunBreakpoints::hits() {
  takeOver();
  return hits_;
}

void RunBreakpoints::forgetHits() {
  hits_.assign(hits_.size(), 0);
  hit_.reset();
}

}  // namespace retrograd

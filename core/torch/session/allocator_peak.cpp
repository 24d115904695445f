#include "core/torch/session/allocator_peak.h"

#include <algorithm>

#include "core/torch/execution/allocator_watch.h"
#include "core/torch/session/session.h"

namespace retrograd {

AllocatorPeak allocatorPeak(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  SessionOptions options;
  options.historyBytes = 0;  // what undoing keeps is not part of the run
  AllocatorWatch watch;
  Session session(analysis, options);
  const auto start = watch.current();
  AllocatorPeak result;
  for (std::size_t position = 0; position < session.size(); ++position) {
    progress.check();
    const auto before = watch.current();
    watch.resetPeak();
    session.step();
    // Operands are let go after the op, so while it runs what it makes is there as well.
    const auto held = std::max(before + session.measures()[position].outputBytes, watch.current());
    if (watch.peak() - start > result.peakBytes) {
      result.peakBytes = watch.peak() - start;
      result.peakPosition = position;
      result.tensorBytes = held - start;
    }
    if (watch.peak() - held > result.workspaceBytes) {
      result.workspaceBytes = watch.peak() - held;
      result.workspacePosition = position;
    }
  }
  return result;
}

}  // namespace retrograd

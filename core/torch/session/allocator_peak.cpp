#include "core/torch/session/allocator_peak.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>

#include "core/torch/session/session.h"

namespace retrograd {
namespace {

/// Counts what LibTorch's CPU allocator hands out and takes back on this thread, kernels' workspaces from that
/// allocator included. What libraries take from elsewhere (oneDNN's scratch memory) is not seen. Takes the place of
/// PyTorch's profiler, which allocators report to.
struct AllocatorWatch : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    current += bytes;
    peak = std::max(peak, current);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t current = 0;  ///< since the beginning
  std::int64_t peak = 0;
};

}  // namespace

AllocatorPeak allocatorPeak(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  const auto watch = std::make_shared<AllocatorWatch>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
  Session session(analysis, {.historyBytes = 0});  // what undoing keeps is not part of the run
  const auto start = watch->current;
  AllocatorPeak result;
  for (std::size_t position = 0; position < session.size(); ++position) {
    progress.check();
    const auto before = watch->current;
    watch->peak = before;
    session.step();
    // Operands are let go after the op, so while it runs what it makes is there as well.
    const auto held = std::max(before + session.measures()[position].outputBytes, watch->current);
    if (watch->peak - start > result.peakBytes) {
      result.peakBytes = watch->peak - start;
      result.peakPosition = position;
      result.tensorBytes = held - start;
    }
    if (watch->peak - held > result.workspaceBytes) {
      result.workspaceBytes = watch->peak - held;
      result.workspacePosition = position;
    }
  }
  return result;
}

}  // namespace retrograd

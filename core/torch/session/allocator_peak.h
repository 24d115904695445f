#pragma once
#include <cstdint>

#include "core/derivation/analysis.h"

namespace retrograd {

/// What the allocator really handed out in a run; MemoryTimeline has what the traces say. Bytes over those before
/// the run.
struct AllocatorPeak {
  std::int64_t peakBytes = 0;         ///< the most at once
  std::size_t peakPosition = 0;       ///< during the op at this position
  std::int64_t tensorBytes = 0;       ///< of these, in what was there when that op began and in what it makes
  std::int64_t workspaceBytes = 0;    ///< the most that one op took beyond what it found and what it makes
  std::size_t workspacePosition = 0;  ///< the op that did
};

/// Runs forward and backward once on the CPU, apart from any session. Throws Error(execution), Error(cancelled).
AllocatorPeak allocatorPeak(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

}  // namespace retrograd

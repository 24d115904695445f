#pragma once
#include <memory>

#include "core/torch/session/session.h"

namespace retrograd {

/// What a partition costs and saves.
struct PartitionFigures {
  std::int64_t savedBytes = 0;  ///< storages saved for backward, each once
  std::int64_t peakBytes = 0;   ///< of memoryTimeline()
  std::size_t recomputedOps = 0;
};

struct WhatIf {
  PartitionFigures before, after;
  double extraSeconds = 0;                   ///< of what runs again after, over what runs again before
  bool measured = false;                     ///< from times of a run; false: estimated from bytes moved
  std::shared_ptr<const Analysis> analysis;  ///< the model under the other partition, ready to be opened
};

/// The analysis derived again, on the same inputs, under another partition: exact, as it is the re-split itself. `measures`: of a session on
/// `analysis`; where each op that would run again has run, its time is known. Throws as analyse().
WhatIf whatIf(const Analysis& analysis, const PartitionOptions& partition, const std::vector<OpMeasure>& measures = {}, const Progress& progress = {});

}  // namespace retrograd

#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/questions/memory_join/memory_join.h"

namespace retrograd {

/// What the trace says that a step of a joined history holds, over what was held before the step.
struct PredictedStep {
  std::vector<std::pair<std::int64_t, std::uint64_t>> line;  ///< events, and bytes that are held after each; by event
  std::uint64_t peakBytes = 0;
};

/// One reason why more or less was held than predicted.
struct PredictionGap {
  std::string reason;  ///< "rounding by the allocator"
  std::int64_t bytes = 0;
};

/// Prediction against truth.
struct MemoryPrediction {
  std::vector<PredictedStep> steps;
  // At the event after which most was held, where that is in a step:
  std::int64_t event = HeldAllocation::outside;
  std::uint64_t recordedBytes = 0, predictedBytes = 0;
  std::vector<PredictionGap> gaps;  ///< largest first; they sum to recorded - predicted
};

/// The step in which an event is, else the last.
std::int32_t stepWith(const MemoryJoin& join, std::int64_t event);
/// The event of a step after which the first `position` ops and no later one had run, as far as the join says.
std::int64_t eventAfter(const MemoryJoin& join, std::int32_t step, std::size_t position);

MemoryPrediction memoryPrediction(const MemoryJoin& join, std::int64_t peakEvent);

}  // namespace retrograd

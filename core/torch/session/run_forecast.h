#pragma once
#include <optional>

#include "core/questions/memory_timeline.h"

namespace retrograd {

/// Compares the memory that the traces say a run will take with what it may take.
class RunForecast {
 public:
  explicit RunForecast(const Analysis& analysis) : analysis_(analysis) {}

  /// Throws Error(badUse) where the ops from `position` to `target` need more than setRunningMemory() allows, or than
  /// is free now; it names the op at which that would be. What kernels take for themselves is not known and not
  /// counted, nor are weights, which stay in their file. Linear in the ops, the first time in the model.
  void requireRoom(std::size_t position, std::size_t target);

 private:
  const Analysis& analysis_;
  std::optional<MemoryTimeline> timeline_;
};

}  // namespace retrograd

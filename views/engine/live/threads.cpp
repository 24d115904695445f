#include "views/engine/threads.h"

#include "core/torch/tracing/thread_scope.h"

namespace retrograd::views {

void useThreads(int count) {
  if (count > 0) setThreads(count);
}

}  // namespace retrograd::views

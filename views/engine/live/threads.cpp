#include "views/engine/threads.h"

#include "core/torch/execution/threads.h"

namespace retrograd::views {

void useThreads(int count) {
  if (count > 0) setThreads(count);
}

}  // namespace retrograd::views

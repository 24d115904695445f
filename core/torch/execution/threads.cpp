#include "core/torch/execution/threads.h"

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

namespace retrograd {

void setThreads(int count) {
  if (count > 0) at::set_num_threads(count);
}

std::string libTorchVersion() { return TORCH_VERSION; }

}  // namespace retrograd

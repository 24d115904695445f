#define USE_DISTRIBUTED
#define USE_C10D_NCCL
#include <ATen/cuda/CUDAContext.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdio>
#include <cstdlib>

#include "core/torch/ranks/nccl/interface.h"

namespace retrograd::nccl {
namespace {

/// LibTorch's watchdogs would end the process where a transfer fails or takes long. Here a rank says what happened, and
/// to all others. A setting of the user stays.
void keepWatchdogsQuiet() {
  for (const char* variable :
       {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING", "TORCH_NCCL_RETHROW_CUDA_ERRORS"})
    setenv(variable, "0", 0);
}

}  // namespace

extern "C" {

int retrogradNcclInterface() { return interfaceVersion; }

int retrogradNcclHeaders() { return NCCL_VERSION_CODE; }

void retrogradNcclUnit(int device, char* text) {
  const auto& bytes = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device))->uuid.bytes;
  for (std::size_t i = 0; i < sizeof bytes; ++i)
    std::snprintf(text + 2 * i, 3, "%02x", static_cast<unsigned char>(bytes[i]));
}

c10d::Backend* retrogradNcclGroup(c10d::Store* store, int rank, int size, std::int64_t timeoutInMilliseconds) {
  keepWatchdogsQuiet();
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(timeoutInMilliseconds);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(store), rank, size,
                                                     options)
      .release();
}

}  // extern "C"
}  // namespace retrograd::nccl

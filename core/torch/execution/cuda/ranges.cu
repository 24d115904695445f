// NVTX is headers only: it looks for a tool that listens when it is first called, and does nothing where there is none.
#include <nvtx3/nvToolsExt.h>

#include "core/torch/execution/cuda/interface.h"

namespace retrograd::cuda {

extern "C" {
void retrogradCudaRangePush(const char* name) { nvtxRangePushA(name); }
void retrogradCudaRangePop() { nvtxRangePop(); }
}

}  // namespace retrograd::cuda

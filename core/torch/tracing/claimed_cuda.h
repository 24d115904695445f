#pragma once
#include <c10/core/Device.h>

namespace retrograd {

/// Lets hollow tensors claim CUDA on a machine that has none: registers a device guard that does nothing, unless
/// LibTorch's CUDA half is loaded and has registered its own. Loading that half later puts the real guard in its place.
void claimCuda();

/// LibTorch's CUDA half is loaded (torch/execution/device.h does that), so that kernels can run on `device`.
bool runsOn(c10::Device device);

}  // namespace retrograd

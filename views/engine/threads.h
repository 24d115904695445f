#pragma once

namespace retrograd::views {

/// How many threads the kernels use of what is run from the calling thread on; 0 changes nothing. Without LibTorch
/// nothing.
void useThreads(int count);

}  // namespace retrograd::views

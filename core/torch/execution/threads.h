#pragma once
#include <string>

namespace retrograd {

/// Threads LibTorch's kernels use in this process; 0 leaves its own choice.
void setThreads(int count);

/// "2.15.0"
std::string libTorchVersion();

}  // namespace retrograd

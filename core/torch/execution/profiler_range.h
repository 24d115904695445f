#pragma once
#include <string>

namespace retrograd {

/// Names the op that runs to a tool such as Nsight Systems, by a range of NVTX, where that was asked for: the tool
/// started this program (it sets NVTX_INJECTION64_PATH), or RETROGRAD_NVTX is 1. Nothing otherwise. LibTorch's CUDA
/// half makes the ranges.
bool profilerListens();

class ProfilerRange {
 public:
  /// `name` is asked for only where a tool listens.
  template <class Name>
  explicit ProfilerRange(bool onGpu, Name&& name) : open_(onGpu && profilerListens()) {
    if (open_) push(name());
  }
  ~ProfilerRange() {
    if (open_) pop();
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  static void push(const std::string& name);
  static void pop();
  const bool open_;
};

}  // namespace retrograd

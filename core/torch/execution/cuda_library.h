#pragma once
#include <string>

#include "core/torch/execution/cuda/interface.h"

namespace retrograd {

/// The functions of libretrograd_cuda.so (torch/execution/cuda/interface.h says what they do).
struct CudaLibrary {
  decltype(&cuda::retrogradCudaInterface) interface;
  decltype(&cuda::retrogradCudaError) error;
  decltype(&cuda::retrogradCudaDeviceCount) deviceCount;
  decltype(&cuda::retrogradCudaSummarise) summarise;
  decltype(&cuda::retrogradCudaHistogram) histogram;
  decltype(&cuda::retrogradCudaRangePush) rangePush;
  decltype(&cuda::retrogradCudaRangePop) rangePop;
  decltype(&cuda::retrogradCudaAllocate) allocate;
  decltype(&cuda::retrogradCudaFree) free;
  decltype(&cuda::retrogradCudaUpload) upload;
  decltype(&cuda::retrogradCudaTimeCopy) timeCopy;
  decltype(&cuda::retrogradCudaTimeSummary) timeSummary;
};

/// The library, loaded on first use from beside the program or from ../lib of there; null where it was not built or is
/// of another version. Loading it needs no driver.
const CudaLibrary* cudaLibrary();

/// Names the op that runs to tools such as Nsight Systems; nothing where the library is missing or `name` is empty.
class ProfilerRange {
 public:
  explicit ProfilerRange(const std::string& name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  const CudaLibrary* library_;
};

}  // namespace retrograd

#pragma once
// The plain C interface of libretrograd_cuda.so. The program loads that library where there is a driver and links
// nothing of CUDA, so that one binary serves machines with and without a GPU. Functions return 0, or a cudaError_t that
// retrogradCudaError() explains.
#include <cstddef>
#include <cstdint>

namespace retrograd::cuda {

inline constexpr int interfaceVersion = 2;

/// Magnitudes are counted by power of two, 2^e <= |x| < 2^(e + 1) for e from -64 to 63; the outermost cells also hold
/// what lies beyond them. Before these cells stand one for zeros and one for numbers below the smallest normal one of
/// the dtype, behind them one for infinities and one for NaN.
inline constexpr int zeroCell = 0, subnormalCell = 1, firstOctaveCell = 2, octaves = 128, leastExponent = -64;
inline constexpr int infinityCell = firstOctaveCell + octaves, nanCell = infinityCell + 1, magnitudeCells = nanCell + 1;

inline constexpr int maximumDims = 8;

/// A strided tensor in memory of the GPU. `strides` in elements; `contiguous`: its elements lie at data[0 .. elements)
/// in some order.
struct Tensor {
  const void* data;
  std::int64_t elements;
  std::int64_t sizes[maximumDims], strides[maximumDims];
  std::int32_t dims;
  std::int32_t dtype;  ///< DType of core/base/tensor_meta.h
  std::int32_t contiguous;
};

/// One pass over a tensor. Moments are over finite elements: `squares` is the sum of squared distances from the mean,
/// `norm` that of squares, `absolutes` that of absolute values, integers by way of float32.
struct Summary {
  double mean, squares, norm, absolutes, least, greatest;
  std::int64_t finite;
  std::int64_t magnitudes[magnitudeCells];
};

extern "C" {
int retrogradCudaInterface();              ///< interfaceVersion of the library
const char* retrogradCudaError(int code);  ///< never null
int retrogradCudaDeviceCount(int* count);
int retrogradCudaDeviceName(int device, char* text, std::size_t size);

/// Statistics and magnitudes in one pass; waits for the stream. `stream`: a cudaStream_t, null for the default one.
int retrogradCudaSummarise(const Tensor* tensor, void* stream, Summary* summary);
/// Counts of `cells` equal cells from `least` on, each 1 / `scale` wide, the last one closed; what is not finite is
/// left out.
int retrogradCudaHistogram(const Tensor* tensor, double least, double scale, int cells, void* stream,
                           std::int64_t* counts);

/// Ranges of NVTX, seen by Nsight Systems; nothing where no tool listens.
void retrogradCudaRangePush(const char* name);
void retrogradCudaRangePop();

// For tests that have no LibTorch with CUDA.
int retrogradCudaAllocate(std::size_t bytes, void** memory);
int retrogradCudaFree(void* memory);
int retrogradCudaUpload(void* to, const void* from, std::size_t bytes);
/// Seconds that `repeats` device-to-device copies of `bytes`, or as many summaries of `tensor`, take on the default
/// stream.
int retrogradCudaTimeCopy(void* to, const void* from, std::size_t bytes, int repeats, double* seconds);
int retrogradCudaTimeSummary(const Tensor* tensor, int repeats, double* seconds);
}

}  // namespace retrograd::cuda

// Statistics, magnitudes and histograms of a tensor, each in one pass over its memory. What a thread does stands in
// summary.h, which the CPU compiles too; here is what only a GPU has: shared memory, shuffles, launches.
#include <cuda_runtime.h>

#include "core/torch/execution/cuda/summary.h"

namespace retrograd::cuda {
namespace {

/// Lanes of a warp mostly meet the same few powers of two; a column of counters for each lane keeps them from queueing
/// up.
struct MagnitudeCounters {
  std::uint32_t counts[magnitudeCells][warp];
};

__device__ Moments shuffledDown(const Moments& own, int offset) {
  constexpr unsigned all = 0xffffffffu;
  Moments other;
  other.mean = __shfl_down_sync(all, own.mean, offset);
  other.squares = __shfl_down_sync(all, own.squares, offset);
  other.norm = __shfl_down_sync(all, own.norm, offset);
  other.absolutes = __shfl_down_sync(all, own.absolutes, offset);
  other.least = __shfl_down_sync(all, own.least, offset);
  other.greatest = __shfl_down_sync(all, own.greatest, offset);
  other.finite = __shfl_down_sync(all, own.finite, offset);
  return other;
}

/// Lanes of each warp merge pairwise, then the first thread merges the warps; the result is the first thread's.
__device__ Moments reduceBlock(Moments own) {
  __shared__ Moments warps[threads / warp];
  for (int offset = warp / 2; offset > 0; offset /= 2) own = merged(own, shuffledDown(own, offset));
  if (threadIdx.x % warp == 0) warps[threadIdx.x / warp] = own;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < threads / warp; ++i) own = merged(own, warps[i]);
  return own;
}

template <class Element>
__global__ void __launch_bounds__(threads)
    summariseKernel(const Tensor tensor, const Layout layout, Moments* blocks, unsigned long long* magnitudes) {
  __shared__ MagnitudeCounters counters;
  for (int i = threadIdx.x; i < magnitudeCells * warp; i += threads) (&counters.counts[0][0])[i] = 0;
  __syncthreads();
  using Number = typename Element::Number;
  Accumulator<Element> accumulator;
  const int lane = threadIdx.x % warp;
  forEachOf<Element>(tensor, layout, std::int64_t{blockIdx.x} * threads + threadIdx.x,
                     std::int64_t{gridDim.x} * threads, [&](Number x) {
                       accumulator.add(x);
                       atomicAdd(&counters.counts[magnitudeCell(x, Number(Element::smallestNormal))][lane], 1u);
                     });
  const auto moments = reduceBlock(accumulator.moments());
  if (threadIdx.x == 0) blocks[blockIdx.x] = moments;
  __syncthreads();
  for (int cell = threadIdx.x; cell < magnitudeCells; cell += threads) {
    unsigned long long count = 0;
    for (int i = 0; i < warp; ++i)
      count += counters.counts[cell][(cell + i) % warp];  // each thread starts at another bank
    if (count) atomicAdd(&magnitudes[cell], count);
  }
}

/// The second level: the blocks' moments in a fixed order.
__global__ void __launch_bounds__(threads) finishKernel(const Moments* blocks, int count, Moments* result) {
  Moments own;
  for (int i = threadIdx.x; i < count; i += threads) own = merged(own, blocks[i]);
  own = reduceBlock(own);
  if (threadIdx.x == 0) *result = own;
}

inline constexpr int sharedCounters = 4096;

template <class Element>
__global__ void __launch_bounds__(threads)
    histogramKernel(const Tensor tensor, const Layout layout, double least, double scale, int cells, int columns,
                    unsigned long long* counts) {
  __shared__ std::uint32_t counters[sharedCounters];
  for (int i = threadIdx.x; i < cells * columns; i += threads) counters[i] = 0;
  __syncthreads();
  using Number = typename Element::Number;
  const int column = threadIdx.x % columns;
  forEachOf<Element>(tensor, layout, std::int64_t{blockIdx.x} * threads + threadIdx.x,
                     std::int64_t{gridDim.x} * threads, [&](Number x) {
                       if (isFinite(x)) atomicAdd(&counters[linearCell(x, least, scale, cells) * columns + column], 1u);
                     });
  __syncthreads();
  for (int cell = threadIdx.x; cell < cells; cell += threads) {
    unsigned long long count = 0;
    for (int i = 0; i < columns; ++i) count += counters[cell * columns + i];
    if (count) atomicAdd(&counts[cell], count);
  }
}

/// Scratch memory of one call, given back at its end.
class Scratch {
 public:
  Scratch(std::size_t bytes, cudaStream_t stream) : stream_(stream), error_(cudaMallocAsync(&memory_, bytes, stream)) {
    if (error_ == cudaSuccess) error_ = cudaMemsetAsync(memory_, 0, bytes, stream);
  }
  ~Scratch() {
    if (memory_) cudaFreeAsync(memory_, stream_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  cudaError_t error() const { return error_; }
  char* memory() const { return static_cast<char*>(memory_); }

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
  cudaError_t error_;
};

/// What the kernels leave, in this order in memory.
struct Results {
  Moments all;
  unsigned long long magnitudes[magnitudeCells];
  Moments blocks[mostBlocks];
};

cudaError_t launchSummary(const Tensor& tensor, Results* results, cudaStream_t stream) {
  const bool known = withElement(static_cast<DType>(tensor.dtype), [&](auto element) {
    using Element = decltype(element);
    const auto layout = layoutOf(tensor, sizeof(typename Element::Bits));
    summariseKernel<Element>
        <<<layout.blocks, threads, 0, stream>>>(tensor, layout, results->blocks, results->magnitudes);
    finishKernel<<<1, threads, 0, stream>>>(results->blocks, layout.blocks, &results->all);
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace

extern "C" {

int retrogradCudaInterface() { return interfaceVersion; }
const char* retrogradCudaError(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }
int retrogradCudaDeviceCount(int* count) {
  *count = 0;
  return cudaGetDeviceCount(count);
}

int retrogradCudaDeviceName(int device, char* text, std::size_t size) {
  cudaDeviceProp properties;
  const auto error = cudaGetDeviceProperties(&properties, device);
  if (size == 0) return error;
  std::size_t i = 0;
  for (; error == cudaSuccess && i + 1 < size && properties.name[i]; ++i) text[i] = properties.name[i];
  text[i] = '\0';
  return error;
}

int retrogradCudaSummarise(const Tensor* tensor, void* stream, Summary* summary) {
  const auto on = static_cast<cudaStream_t>(stream);
  *summary = {};
  if (tensor->elements == 0) return cudaSuccess;
  Scratch scratch(sizeof(Results), on);
  if (scratch.error() != cudaSuccess) return scratch.error();
  auto* results = reinterpret_cast<Results*>(scratch.memory());
  if (const auto error = launchSummary(*tensor, results, on); error != cudaSuccess) return error;
  struct {
    Moments all;
    unsigned long long magnitudes[magnitudeCells];
  } host;
  static_assert(offsetof(Results, blocks) >= sizeof host);
  if (const auto error = cudaMemcpyAsync(&host, results, sizeof host, cudaMemcpyDeviceToHost, on); error != cudaSuccess)
    return error;
  if (const auto error = cudaStreamSynchronize(on); error != cudaSuccess) return error;
  summary->mean = host.all.mean;
  summary->squares = host.all.squares;
  summary->norm = host.all.norm;
  summary->absolutes = host.all.absolutes;
  summary->least = host.all.least;
  summary->greatest = host.all.greatest;
  summary->finite = host.all.finite;
  for (int i = 0; i < magnitudeCells; ++i) summary->magnitudes[i] = static_cast<std::int64_t>(host.magnitudes[i]);
  return cudaSuccess;
}

int retrogradCudaHistogram(const Tensor* tensor, double least, double scale, int cells, void* stream,
                           std::int64_t* counts) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (cells < 1 || cells > sharedCounters) return cudaErrorInvalidValue;
  for (int i = 0; i < cells; ++i) counts[i] = 0;
  if (tensor->elements == 0) return cudaSuccess;
  int columns = 1;
  while (columns < warp && cells * columns * 2 <= sharedCounters) columns *= 2;
  const std::size_t bytes = cells * sizeof(unsigned long long);
  Scratch scratch(bytes, on);
  if (scratch.error() != cudaSuccess) return scratch.error();
  const bool known = withElement(static_cast<DType>(tensor->dtype), [&](auto element) {
    using Element = decltype(element);
    const auto layout = layoutOf(*tensor, sizeof(typename Element::Bits));
    histogramKernel<Element><<<layout.blocks, threads, 0, on>>>(
        *tensor, layout, least, scale, cells, columns, reinterpret_cast<unsigned long long*>(scratch.memory()));
  });
  if (!known) return cudaErrorInvalidValue;
  if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
  if (const auto error = cudaMemcpyAsync(counts, scratch.memory(), bytes, cudaMemcpyDeviceToHost, on);
      error != cudaSuccess)
    return error;
  return cudaStreamSynchronize(on);
}

int retrogradCudaAllocate(std::size_t bytes, void** memory) { return cudaMalloc(memory, bytes); }
int retrogradCudaFree(void* memory) { return cudaFree(memory); }
int retrogradCudaUpload(void* to, const void* from, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
}

}  // extern "C"

namespace {

/// Seconds that `work` takes, by events; the first run is not counted.
template <class Work>
int timed(int repeats, double* seconds, Work&& work) {
  cudaEvent_t begin, end;
  if (const auto error = cudaEventCreate(&begin); error != cudaSuccess) return error;
  if (const auto error = cudaEventCreate(&end); error != cudaSuccess) return error;
  auto error = work();
  cudaEventRecord(begin);
  for (int i = 0; i < repeats && error == cudaSuccess; ++i) error = work();
  cudaEventRecord(end);
  if (error == cudaSuccess) error = cudaEventSynchronize(end);
  float milliseconds = 0;
  if (error == cudaSuccess) error = cudaEventElapsedTime(&milliseconds, begin, end);
  *seconds = milliseconds * 1e-3;
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return error;
}

}  // namespace

extern "C" {

int retrogradCudaTimeCopy(void* to, const void* from, std::size_t bytes, int repeats, double* seconds) {
  return timed(repeats, seconds, [&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr); });
}

int retrogradCudaTimeSummary(const Tensor* tensor, int repeats, double* seconds) {
  Scratch scratch(sizeof(Results), nullptr);
  if (scratch.error() != cudaSuccess) return scratch.error();
  return timed(repeats, seconds,
               [&] { return launchSummary(*tensor, reinterpret_cast<Results*>(scratch.memory()), nullptr); });
}

}  // extern "C"

}  // namespace retrograd::cuda

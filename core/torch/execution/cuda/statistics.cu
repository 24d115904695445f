// Statistics, magnitudes and histograms of a tensor, each in one pass over its memory. What a thread does is in
// summary.h, which the CPU compiles too; here is what only a GPU has: shared memory, shuffles, entry points. For each
// dtype there are
//
//   summarise_DTYPE(Tasks, Scratch*)                    grid (blocks of the largest, number of tasks)
//   magnitudes_DTYPE(Tensor, Layout, counts)            counts: magnitudeCells of them, which start as zeros
//   histogram_DTYPE(Tensor, Layout, LinearCells, columns, counts)   counts: LinearCells::cells of them, likewise
#include "core/torch/execution/cuda/summary.h"

namespace retrograd::cuda {
namespace {

using Count = unsigned long long;

__device__ Summary shuffledDown(const Summary& own, int offset) {
  constexpr unsigned all = 0xffffffffu;
  Summary other;
  other.mean = __shfl_down_sync(all, own.mean, offset);
  other.squares = __shfl_down_sync(all, own.squares, offset);
  other.norm = __shfl_down_sync(all, own.norm, offset);
  other.absolutes = __shfl_down_sync(all, own.absolutes, offset);
  other.least = __shfl_down_sync(all, own.least, offset);
  other.greatest = __shfl_down_sync(all, own.greatest, offset);
  other.finite = __shfl_down_sync(all, own.finite, offset);
  other.zeros = __shfl_down_sync(all, own.zeros, offset);
  other.subnormal = __shfl_down_sync(all, own.subnormal, offset);
  other.infinite = __shfl_down_sync(all, own.infinite, offset);
  other.nan = __shfl_down_sync(all, own.nan, offset);
  return other;
}

/// Lanes of each warp merge pairwise, then the first thread merges the warps; the result is the first thread's.
__device__ Summary reduceBlock(Summary own) {
  __shared__ Summary warps[threads / warp];
  for (int offset = warp / 2; offset > 0; offset /= 2) own = merged(own, shuffledDown(own, offset));
  if (threadIdx.x % warp == 0) warps[threadIdx.x / warp] = own;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < threads / warp; ++i) own = merged(own, warps[i]);
  __syncthreads();
  return own;
}

/// The block that is done last merges all of them, in an order that depends on their number alone.
template <class Element>
__device__ void summarise(const Tasks& tasks, Scratch* scratch) {
  const int row = blockIdx.y;
  const Task& task = tasks.tasks[row];
  const int blocks = task.layout.blocks;
  if (static_cast<int>(blockIdx.x) >= blocks) return;
  const auto own = reduceBlock(summaryOfThread<Element>(
      task.tensor, task.layout, std::int64_t{blockIdx.x} * threads + threadIdx.x, std::int64_t{blocks} * threads));
  if (blocks == 1) {
    if (threadIdx.x == 0) *task.summary = own;
    return;
  }
  __shared__ bool isLast;
  if (threadIdx.x == 0) {
    scratch->blocks[row][blockIdx.x] = own;
    __threadfence();
    isLast = atomicAdd(&scratch->done[row], 1u) == static_cast<unsigned>(blocks - 1);
  }
  __syncthreads();
  if (!isLast) return;
  __threadfence();
  Summary all{};
  for (int i = threadIdx.x; i < blocks; i += threads) {
    const volatile Summary& other = scratch->blocks[row][i];
    all = merged(all, Summary{other.mean, other.squares, other.norm, other.absolutes, other.least, other.greatest,
                              other.finite, other.zeros, other.subnormal, other.infinite, other.nan});
  }
  all = reduceBlock(all);
  if (threadIdx.x == 0) {
    *task.summary = all;
    scratch->done[row] = 0;
  }
}

/// Lanes of a warp mostly meet the same few powers of two; a column of counters for each lane keeps them from queueing
/// up.
template <class Element>
__device__ void countMagnitudes(const Tensor& tensor, const Layout& layout, Count* magnitudes) {
  __shared__ std::uint32_t counters[magnitudeCells][warp];
  for (int i = threadIdx.x; i < magnitudeCells * warp; i += threads) (&counters[0][0])[i] = 0;
  __syncthreads();
  using Number = typename Element::Number;
  const int lane = threadIdx.x % warp;
  forEachOf<Element>(
      tensor, layout, std::int64_t{blockIdx.x} * threads + threadIdx.x, std::int64_t{gridDim.x} * threads,
      [&](Number x) { atomicAdd(&counters[magnitudeCell(x, Number(Element::smallestNormal))][lane], 1u); });
  __syncthreads();
  for (int cell = threadIdx.x; cell < magnitudeCells; cell += threads) {
    Count count = 0;
    for (int i = 0; i < warp; ++i) count += counters[cell][(cell + i) % warp];  // each thread starts at another bank
    if (count) atomicAdd(&magnitudes[cell], count);
  }
}

template <class Element>
__device__ void countCells(const Tensor& tensor, const Layout& layout, const LinearCells& cells, int columns,
                           Count* counts) {
  __shared__ std::uint32_t counters[mostCells];
  for (int i = threadIdx.x; i < cells.cells * columns; i += threads) counters[i] = 0;
  __syncthreads();
  const int column = threadIdx.x % columns;
  forEachOf<Element>(tensor, layout, std::int64_t{blockIdx.x} * threads + threadIdx.x,
                     std::int64_t{gridDim.x} * threads, [&](typename Element::Number x) {
                       if (isFinite(x)) atomicAdd(&counters[linearCell(x, cells) * columns + column], 1u);
                     });
  __syncthreads();
  for (int cell = threadIdx.x; cell < cells.cells; cell += threads) {
    Count count = 0;
    for (int i = 0; i < columns; ++i) count += counters[cell * columns + i];
    if (count) atomicAdd(&counts[cell], count);
  }
}

}  // namespace

#define RETROGRAD_KERNELS(dtype)                                                                             \
  extern "C" __global__ void __launch_bounds__(threads)                                                      \
      summarise_##dtype(const __grid_constant__ Tasks tasks, Scratch* scratch) {                             \
    summarise<Element<DType::dtype>>(tasks, scratch);                                                        \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(threads)                                                      \
      magnitudes_##dtype(const __grid_constant__ Tensor tensor, const Layout layout, Count* counts) {        \
    countMagnitudes<Element<DType::dtype>>(tensor, layout, counts);                                          \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(threads)                                                      \
      histogram_##dtype(const __grid_constant__ Tensor tensor, const Layout layout, const LinearCells cells, \
                        int columns, Count* counts) {                                                        \
    countCells<Element<DType::dtype>>(tensor, layout, cells, columns, counts);                               \
  }
RETROGRAD_EACH_DTYPE(RETROGRAD_KERNELS)
#undef RETROGRAD_KERNELS

}  // namespace retrograd::cuda

#pragma once
// What the kernels (statistics.cu) and the program share: the layout of what goes in and comes out. No headers of CUDA,
// so that everything but the kernels themselves is compiled on any machine.
#include <cstddef>
#include <cstdint>

namespace retrograd::cuda {

/// Of the kernels, where privateFile() finds it.
inline constexpr const char* kernelFileName = "retrograd_kernels.fatbin";

/// Magnitudes are counted by power of two, 2^e <= |x| < 2^(e + 1) for e from -64 to 63; the outermost cells also hold
/// what lies beyond them. The cells before these count zeros and numbers below the smallest normal one of the dtype,
/// the cells behind them infinities and NaN.
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

/// Statistics of some elements; those of several sets can be merged. Moments are over finite elements: `squares` is the
/// sum of squared distances from the mean, `norm` that of squares, `absolutes` that of absolute values, integers by way
/// of float32. Where nothing is finite, `least` and `greatest` are 0. All zero bytes: no elements.
struct Summary {
  double mean, squares, norm, absolutes, least, greatest;
  std::int64_t finite, zeros, subnormal, infinite, nan;
};

/// How the work is laid out: `blocks` of `threads`, each thread takes vectors of 16 bytes in strides of the whole grid.
/// What lies before the first and behind the last whole vector goes one by one to the first threads.
inline constexpr int threads = 256, warp = 32, mostBlocks = 2048, vectorBytes = 16;

struct Layout {
  std::int64_t head, vectors, tail;  ///< elements, vectors, elements
  std::int32_t blocks;
};

/// A tensor of a launch and where its summary goes.
struct Task {
  Tensor tensor;
  Layout layout;
  Summary* summary;
};

/// Parameter of summarise_DTYPE: the tensors of one launch, a row of the grid each.
inline constexpr int mostTasks = 4;
struct Tasks {
  Task tasks[mostTasks];
};

/// Memory that launches of one stream share: what each block found, and how many blocks of a row are done. It starts as
/// zeros, and each launch leaves it so.
struct Scratch {
  Summary blocks[mostTasks][mostBlocks];
  std::uint32_t done[mostTasks];
};

/// Equal cells between the least and the greatest finite element, the last one closed. `factor` keeps the range of any
/// two doubles finite and not too small to divide by.
struct LinearCells {
  double factor, least, scale;
  std::int32_t cells;
};

/// That histogram_DTYPE has counters for.
inline constexpr int mostCells = 4096;

}  // namespace retrograd::cuda

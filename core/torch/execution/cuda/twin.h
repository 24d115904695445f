#pragma once
// The kernels on the CPU: the same threads, one after the other. For tests, not for speed
// (torch/execution/statistics.cpp is for that).
#include <vector>

#include "core/torch/execution/cuda/summary.h"

namespace retrograd::cuda::twin {

/// What a block does: lanes of each warp merge pairwise, then the first thread merges the warps.
inline Summary reduceBlock(std::vector<Summary> lanes) {
  for (std::size_t begin = 0; begin < lanes.size(); begin += warp)
    for (int offset = warp / 2; offset > 0; offset /= 2)
      for (int lane = 0; lane < offset; ++lane) {
        auto& mine = lanes[begin + lane];
        mine = merged(mine, lanes[begin + lane + offset]);
      }
  Summary all = lanes[0];
  for (std::size_t begin = warp; begin < lanes.size(); begin += warp) all = merged(all, lanes[begin]);
  return all;
}

/// A row of summarise_DTYPE.
template <class Element>
Summary summarise(const Tensor& tensor, const Layout& layout) {
  std::vector<Summary> blocks;
  for (int block = 0; block < layout.blocks; ++block) {
    std::vector<Summary> lanes;
    for (int thread = 0; thread < threads; ++thread)
      lanes.push_back(summaryOfThread<Element>(tensor, layout, std::int64_t{block} * threads + thread,
                                               std::int64_t{layout.blocks} * threads));
    blocks.push_back(reduceBlock(std::move(lanes)));
  }
  if (blocks.size() == 1) return blocks[0];
  std::vector<Summary> lanes(threads, Summary{});
  for (std::size_t block = 0; block < blocks.size(); ++block)
    lanes[block % threads] = merged(lanes[block % threads], blocks[block]);
  return reduceBlock(std::move(lanes));
}

/// Statistics of a tensor in memory of the CPU, as a GPU that runs `most` blocks at once makes them; false for a dtype
/// that has no element.
inline bool summarise(const Tensor& tensor, Summary& summary, int most = mostBlocks) {
  summary = {};
  return withElement(static_cast<DType>(tensor.dtype), [&](auto element) {
    using Element = decltype(element);
    summary = summarise<Element>(tensor, layoutOf<Element>(tensor, most));
  });
}

/// magnitudes_DTYPE; `counts` has magnitudeCells of them.
inline bool magnitudes(const Tensor& tensor, std::int64_t* counts) {
  return withElement(static_cast<DType>(tensor.dtype), [&](auto element) {
    using Element = decltype(element);
    forEachOf<Element>(tensor, layoutOf<Element>(tensor, 1), 0, 1, [&](typename Element::Number x) {
      ++counts[magnitudeCell(x, typename Element::Number(Element::smallestNormal))];
    });
  });
}

/// histogram_DTYPE likewise.
inline bool histogram(const Tensor& tensor, const LinearCells& cells, std::int64_t* counts) {
  return withElement(static_cast<DType>(tensor.dtype), [&](auto element) {
    using Element = decltype(element);
    forEachOf<Element>(tensor, layoutOf<Element>(tensor, 1), 0, 1, [&](typename Element::Number x) {
      if (isFinite(x)) ++counts[linearCell(x, cells)];
    });
  });
}

}  // namespace retrograd::cuda::twin

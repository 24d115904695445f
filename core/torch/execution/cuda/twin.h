#pragma once
// The statistics kernels on the CPU: the same threads, one after the other. For tests, not for speed
// (torch/execution/statistics.cpp is for that).
#include <vector>

#include "core/torch/execution/cuda/summary.h"

namespace retrograd::cuda::twin {

/// What a block does: lanes of each warp merge pairwise, then the first thread merges the warps.
inline Moments reduceBlock(std::vector<Moments> lanes) {
  for (std::size_t begin = 0; begin < lanes.size(); begin += warp)
    for (int offset = warp / 2; offset > 0; offset /= 2)
      for (int lane = 0; lane < offset; ++lane) {
        auto& mine = lanes[begin + lane];
        mine = merged(mine, lanes[begin + lane + offset]);
      }
  Moments all = lanes[0];
  for (std::size_t begin = warp; begin < lanes.size(); begin += warp) all = merged(all, lanes[begin]);
  return all;
}

/// retrogradCudaSummarise() on memory of the CPU; false for a dtype that it has no element of.
inline bool summarise(const Tensor& tensor, Summary& summary) {
  summary = {};
  return withElement(static_cast<DType>(tensor.dtype), [&](auto element) {
    using Element = decltype(element);
    const auto layout = layoutOf(tensor, sizeof(typename Element::Bits));
    std::vector<Moments> blocks;
    for (int block = 0; block < layout.blocks; ++block) {
      std::vector<Moments> lanes;
      for (int thread = 0; thread < threads; ++thread) {
        Accumulator<Element> accumulator;
        const auto index = std::int64_t{block} * threads + thread, stride = std::int64_t{layout.blocks} * threads;
        forEachOf<Element>(tensor, layout, index, stride, [&](typename Element::Number x) {
          accumulator.add(x);
          ++summary.magnitudes[magnitudeCell(x, Element::smallestNormal)];
        });
        lanes.push_back(accumulator.moments());
      }
      blocks.push_back(reduceBlock(std::move(lanes)));
    }
    std::vector<Moments> lanes(threads);
    for (std::size_t block = 0; block < blocks.size(); ++block)
      lanes[block % threads] = merged(lanes[block % threads], blocks[block]);
    const auto all = reduceBlock(std::move(lanes));
    summary.mean = all.mean;
    summary.squares = all.squares;
    summary.norm = all.norm;
    summary.absolutes = all.absolutes;
    summary.least = all.least;
    summary.greatest = all.greatest;
    summary.finite = all.finite;
  });
}

/// retrogradCudaHistogram() likewise.
inline bool histogram(const Tensor& tensor, double least, double scale, std::vector<std::int64_t>& counts) {
  return withElement(static_cast<DType>(tensor.dtype), [&](auto element) {
    using Element = decltype(element);
    const auto layout = layoutOf(tensor, sizeof(typename Element::Bits));
    forEachOf<Element>(tensor, layout, 0, 1, [&](typename Element::Number x) {
      if (isFinite(x)) ++counts[linearCell(x, least, scale, static_cast<int>(counts.size()))];
    });
  });
}

}  // namespace retrograd::cuda::twin

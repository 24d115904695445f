#pragma once
#include <cmath>
#include <string>

#include "core/base/tensor_statistics.h"
#include "core/torch/execution/cuda/interface.h"

namespace retrograd::cuda {

/// What the kernel found, in the terms of statistics.
inline TensorStatistics toStatistics(const Summary& summary) {
  TensorStatistics s;
  for (auto count : summary.magnitudes) s.elements += count;
  s.zeros = summary.magnitudes[zeroCell];
  s.subnormal = summary.magnitudes[subnormalCell];
  s.inf = summary.magnitudes[infinityCell];
  s.nan = summary.magnitudes[nanCell];
  s.min = summary.least;
  s.max = summary.greatest;
  s.mean = summary.mean;
  s.standardDeviation = summary.finite > 1 ? std::sqrt(summary.squares / static_cast<double>(summary.finite - 1)) : 0;
  s.norm = std::sqrt(summary.norm);
  s.norm1 = summary.absolutes;
  return s;
}

/// A cell of Summary::magnitudes for people: "zero", "2^-3", "NaN".
inline std::string magnitudeText(int cell) {
  if (cell == zeroCell) return "zero";
  if (cell == subnormalCell) return "subnormal";
  if (cell == infinityCell) return "Inf";
  if (cell == nanCell) return "NaN";
  return "2^" + std::to_string(cell - firstOctaveCell + leastExponent);
}

}  // namespace retrograd::cuda

#pragma once
#include <cstdint>

namespace retrograd {

/// One pass over a tensor's elements. For integers and booleans the same fields hold; complex: of the absolute values.
struct TensorStatistics {
  std::int64_t elements = 0, nan = 0, inf = 0, zeros = 0, subnormal = 0;
  double min = 0, max = 0, mean = 0, standardDeviation = 0;  ///< over finite elements; 0 where there are none
  double norm = 0;                                           ///< 2-norm over finite elements
  double norm1 = 0;  ///< sum of absolute values of finite elements; integers and booleans go through float32 first
};

}  // namespace retrograd

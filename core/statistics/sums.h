#pragma once
#include <cstdint>
#include <limits>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// What one pass over some elements adds up. Sums, least and greatest are over finite elements; of complex ones the
/// absolute values count.
struct Sums {
  std::int64_t elements = 0, nan = 0, inf = 0, zeros = 0, subnormal = 0;
  double sum = 0, absolutes = 0, squares = 0;
  double least = std::numeric_limits<double>::infinity(), greatest = -std::numeric_limits<double>::infinity();

  std::int64_t finite() const { return elements - nan - inf; }
  void merge(const Sums& other);
};

/// Adds `elements` elements that lie side by side from `data` on, which need not be aligned, with the widest vectors
/// this processor has. All sums are in double precision. `absolutes` takes integers and booleans through float32 first,
/// as torch.utils._debug_mode does for its hashes.
void addSums(DType dtype, const void* data, std::int64_t elements, Sums& sums);

/// The sum of squared distances from `mean`, of the finite elements, and the sum of those distances.
struct Distances {
  double sum = 0, squares = 0;
};
void addDistances(DType dtype, const void* data, std::int64_t elements, double mean, Distances& distances);

/// The same sums as addSums() for elements whose squares leave the range of a double: in the widest type there is, one
/// by one.
struct WideSums {
  long double sum = 0, absolutes = 0, squares = 0;
};
void addWideSums(DType dtype, const void* data, std::int64_t elements, WideSums& sums);

}  // namespace retrograd

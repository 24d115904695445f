#pragma once
#include <functional>
#include <vector>

#include "core/base/tensor_meta.h"
#include "core/base/tensor_statistics.h"

namespace retrograd {

/// The elements of a strided tensor in memory of the CPU; strides in elements, none negative.
struct StridedNumbers {
  DType dtype = DType::f32;
  const void* data = nullptr;
  std::vector<std::int64_t> sizes, strides;
};

/// The memory that the elements of a tensor lie in. Two of them are equal where statistics are, as long as nobody
/// writes: a transposed matrix has the footprint of the matrix.
struct Footprint {
  struct Dim {
    std::int64_t size, stride;
    bool operator==(const Dim&) const = default;
  };
  DType dtype;
  const void* data;
  std::int64_t elements = 1;  ///< at different places
  std::int64_t copies = 1;    ///< how often each of them counts (dimensions of stride 0)
  std::vector<Dim> dims;      ///< the largest stride first, those that can be one joined; at least one

  explicit Footprint(const StridedNumbers& numbers);
  bool operator==(const Footprint&) const = default;
};

/// Calls `body` with 0 to count - 1, each once, on as many threads as it likes.
using ForEachChunk = std::function<void(std::int64_t count, const std::function<void(std::int64_t)>& body)>;

/// Statistics of all elements in one pass over their memory; a second pass only where squares cancel or leave the range
/// of a double. Elements that several places of the tensor share (stride 0) are read once. The result does not depend
/// on the threads.
TensorStatistics statisticsOf(const Footprint& footprint, const ForEachChunk& forEachChunk);

}  // namespace retrograd

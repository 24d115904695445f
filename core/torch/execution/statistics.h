#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "core/base/tensor_statistics.h"
#include "core/statistics/tensor_pass.h"

namespace retrograd {

/// One pass over the elements, on the GPU for a tensor that is there, else vectorised and on LibTorch's threads where
/// it is large; complex tensors by absolute value.
TensorStatistics computeStatistics(const at::Tensor& tensor);
/// Statistics of the values of a run, one after the other. Views that hold the same elements as a value before them (a
/// transposed, reshaped or detached one) get what was found there, unless their storage was written since.
class RunStatistics {
 public:
  TensorStatistics of(StorageId storage, const at::Tensor& tensor);
  void written(StorageId storage);

 private:
  struct Known {
    Footprint footprint;
    TensorStatistics statistics;
  };
  std::unordered_map<StorageId, std::vector<Known>> known_;
};

/// Counts of `bins` equal cells between the least and the greatest finite element; two passes, as the cells need both.
std::vector<std::int64_t> computeHistogram(const at::Tensor& tensor, int bins);
/// Counts by power of two, in the cells that cuda::Summary::magnitudes has; with the statistics in one pass on a GPU.
std::vector<std::int64_t> computeMagnitudes(const at::Tensor& tensor);
/// A NaN or an infinity among the elements.
bool hasBadNumber(const at::Tensor& tensor);

}  // namespace retrograd

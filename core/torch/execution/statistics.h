#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
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
/// transposed, reshaped or detached one) get what was found there, unless their storage was written since. On a GPU the
/// results stay there until settle(): values of an op that have the same dtype share launches (cuda/summaries.h), and
/// nothing waits.
class RunStatistics {
 public:
  /// `mostValues`: how many values the run has, for the memory of a GPU; more of them cost a copy each time it is full.
  explicit RunStatistics(std::size_t mostValues);
  ~RunStatistics();
  RunStatistics(const RunStatistics&) = delete;
  RunStatistics& operator=(const RunStatistics&) = delete;

  /// Fills `result`, which must live until then, now or by settle(). The tensor may be let go or written after the next
  /// endOp().
  void add(StorageId storage, const at::Tensor& tensor, TensorStatistics& result);
  void written(StorageId storage);
  /// Any storage may have been written since, as where a run starts again from an earlier op.
  void allWritten();
  /// After the values of an op.
  void endOp();
  /// Copies from GPUs what is still there.
  void settle();

 private:
  class OnGpu;
  struct Known {
    Footprint footprint;
    TensorStatistics* statistics;  ///< of the first value that had it; may be open
  };
  OnGpu* onGpu(const at::Tensor& tensor);

  const std::size_t mostValues_;
  std::unordered_map<StorageId, std::vector<Known>> known_;
  std::map<int, std::unique_ptr<OnGpu>> gpus_;
};

/// Counts of `bins` equal cells between the least and the greatest finite element; two passes, as the cells need both.
std::vector<std::int64_t> computeHistogram(const at::Tensor& tensor, int bins);
/// Counts by power of two, in the cells that cuda/interface.h names.
std::vector<std::int64_t> computeMagnitudes(const at::Tensor& tensor);
/// A NaN or an infinity among the elements.
bool hasBadNumber(const at::Tensor& tensor);

}  // namespace retrograd

#pragma once
#include <optional>
#include <vector>

#include "core/statistics/tensor_pass.h"
#include "core/torch/execution/cuda/gpu.h"
#include "core/torch/execution/cuda/interface.h"

namespace retrograd::cuda {

/// As the kernels take it; nullopt for more dimensions than these have room for.
std::optional<Tensor> tensorOf(const Footprint& footprint);

/// What a kernel found of a tensor each of whose elements counts `copies` times, in the terms of statistics.
TensorStatistics toStatistics(const Summary& summary, std::int64_t copies = 1);

/// A cell of magnitudes for people: "zero", "2^-3", "NaN".
std::string magnitudeText(int cell);

/// Summaries of the values of a run on one GPU. They stay there, in memory that is taken once, until they are copied at
/// the run's end: a value costs at most one launch, and nothing waits or allocates.
class Summaries {
 public:
  /// Room for `capacity` of them. Throws Error(execution). The GPU has kernels.
  Summaries(Gpu& gpu, std::size_t capacity);

  /// A place for the summary of a tensor, which is read by the next launch().
  std::size_t add(const Tensor& tensor);
  /// Launches what was added since: one kernel for up to mostTasks tensors of a dtype.
  void launch();
  /// Launches, and copies all that were added; `places` start again from 0.
  std::vector<Summary> take();
  bool isFull() const { return used_ == capacity_; }

 private:
  Gpu& gpu_;
  const std::size_t capacity_;
  std::size_t used_ = 0;
  Memory memory_;  // Scratch, then the summaries
  struct Waiting {
    Tensor tensor;
    std::size_t place;
  };
  std::vector<Waiting> waiting_;
};

/// Counts of one tensor, as magnitudes() and histogram() of the twin have them; both wait for the GPU.
class Counts {
 public:
  explicit Counts(Gpu& gpu);
  std::vector<std::int64_t> magnitudes(const Tensor& tensor);
  /// Throws Error(badUse) for more than mostCells.
  std::vector<std::int64_t> histogram(const Tensor& tensor, const LinearCells& cells);

 private:
  std::vector<std::int64_t> take(int count);
  Gpu& gpu_;
  Memory memory_;
};

}  // namespace retrograd::cuda

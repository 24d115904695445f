#include "core/torch/execution/device_statistics.h"

#include <map>
#include <mutex>

#include "core/torch/execution/cuda/summary.h"

namespace retrograd {
namespace {

/// Memory for one tensor at a time, kept for the next one.
struct OneAtATime {
  explicit OneAtATime(cuda::Gpu& gpu) : summaries(gpu, 1), counts(gpu) {}
  cuda::Summaries summaries;
  cuda::Counts counts;
};

template <class Body>
auto withMemory(cuda::Gpu& gpu, Body&& body) {
  static std::mutex mutex;
  static std::map<cuda::Gpu*, std::unique_ptr<OneAtATime>> all;
  const std::lock_guard lock(mutex);
  auto& memory = all[&gpu];
  if (!memory) memory = std::make_unique<OneAtATime>(gpu);
  return body(*memory);
}

std::vector<std::int64_t> timesCopies(std::vector<std::int64_t> counts, const Footprint& footprint) {
  for (auto& count : counts) count *= footprint.copies;
  return counts;
}

cuda::Summary summarise(OneAtATime& memory, const cuda::Tensor& tensor) {
  memory.summaries.add(tensor);
  return memory.summaries.take().front();
}

}  // namespace

cuda::Gpu* gpuOf(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return nullptr;
  auto& gpu = cuda::gpu(std::max<int>(tensor.device().index(), 0));
  return gpu.withoutKernels().empty() ? &gpu : nullptr;
}

std::optional<TensorStatistics> summariseOnDevice(cuda::Gpu& gpu, const Footprint& footprint) {
  const auto tensor = cuda::tensorOf(footprint);
  if (!tensor) return std::nullopt;
  return withMemory(
      gpu, [&](OneAtATime& memory) { return cuda::toStatistics(summarise(memory, *tensor), footprint.copies); });
}

std::optional<std::vector<std::int64_t>> magnitudesOnDevice(cuda::Gpu& gpu, const Footprint& footprint) {
  const auto tensor = cuda::tensorOf(footprint);
  if (!tensor) return std::nullopt;
  return timesCopies(withMemory(gpu, [&](OneAtATime& memory) { return memory.counts.magnitudes(*tensor); }), footprint);
}

std::optional<std::vector<std::int64_t>> histogramOnDevice(cuda::Gpu& gpu, const Footprint& footprint, int bins) {
  const auto tensor = bins <= cuda::mostCells ? cuda::tensorOf(footprint) : std::nullopt;
  if (!tensor) return std::nullopt;
  return withMemory(gpu, [&](OneAtATime& memory) {
    const auto summary = summarise(memory, *tensor);
    if (summary.finite == 0) return std::vector<std::int64_t>(bins, 0);
    return timesCopies(memory.counts.histogram(*tensor, cuda::linearCells(summary.least, summary.greatest, bins)),
                       footprint);
  });
}

}  // namespace retrograd

#include "core/torch/execution/statistics.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/torch/execution/cuda/summaries.h"
#include "core/torch/execution/cuda/summary.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd {
namespace {

/// Elements in order, on the CPU, in a dtype the loops know.
at::Tensor plain(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  const bool asIs = tensor.layout() == at::kStrided && tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_neg();
  if (asIs && (type == at::kFloat || type == at::kLong || type == at::kBool || type == at::kDouble))
    return tensor;  // the usual, without an op
  auto t = tensor.detach();
  if (t.layout() != at::kStrided) t = t.to_dense();
  if (t.is_complex()) t = (t.scalar_type() == at::kComplexHalf ? t.to(at::kComplexFloat) : t).abs();
  switch (t.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
    case at::kLong:
    case at::kInt:
    case at::kShort:
    case at::kChar:
    case at::kByte:
    case at::kBool: break;
    case at::kUInt32:
    case at::kUInt64: t = t.to(at::kDouble); break;
    default: t = t.to(at::kFloat);
  }
  return t.resolve_neg().to(at::kCPU).contiguous();
}

template <class Scalar, class Visit>
void forEach(const at::Tensor& t, Visit&& visit) {
  const auto* data = static_cast<const Scalar*>(t.const_data_ptr());
  for (std::int64_t i = 0, n = t.numel(); i < n; ++i) visit(static_cast<double>(data[i]));
}

template <class Visit>
void forEachElement(const at::Tensor& t, Visit&& visit) {
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, t.scalar_type(), "statistics",
                             [&] { forEach<scalar_t>(t, visit); });
}

/// Below the smallest normal number of the dtype, and not zero.
double smallestNormal(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return std::numeric_limits<double>::min();
    case at::kFloat:
    case at::kBFloat16: return std::numeric_limits<float>::min();
    case at::kHalf: return 6.103515625e-05;
    default: return 0;
  }
}

/// Strided and in a dtype of ours, where it is: on the CPU, or on a GPU that `stays` says has kernels. `kept` holds
/// what had to be copied.
std::optional<Footprint> footprintOf(const at::Tensor& tensor, at::Tensor& kept, bool stays = false) {
  kept = tensor;
  if (tensor.layout() != at::kStrided || !(tensor.is_cpu() || stays) ||
      tensor.is_neg()) {  // the usual needs no op, which costs more than a small tensor's pass
    kept = tensor.detach();
    if (kept.layout() != at::kStrided) kept = kept.to_dense();
    kept = kept.resolve_neg();  // conjugation leaves absolute values alone
    if (!stays) kept = kept.to(at::kCPU);
  }
  const auto dtype = findDType(kept.scalar_type());
  if (!dtype) return std::nullopt;
  return Footprint(StridedNumbers{*dtype, kept.const_data_ptr(), kept.sizes().vec(), kept.strides().vec()});
}

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

/// The GPU whose kernels make the statistics of a tensor there; null for one on the CPU, and where there are no
/// kernels. Throws Error(execution).
cuda::Gpu* gpuOf(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return nullptr;
  auto& gpu = cuda::gpu(std::max<int>(tensor.device().index(), 0));
  return gpu.withoutKernels().empty() ? &gpu : nullptr;
}

// What one pass of our own kernels finds on `gpu`, which has the memory; nullopt for a tensor that they cannot take.
// Throw Error(execution) where the GPU fails.

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

/// After a pass for the bounds.
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

/// What `ask` finds on the GPU that has the tensor; nullopt where the CPU has to do it.
template <class Ask>
auto askGpu(const at::Tensor& tensor, Ask&& ask)
    -> decltype(ask(std::declval<cuda::Gpu&>(), std::declval<Footprint>())) {
  auto* gpu = gpuOf(tensor);
  if (!gpu) return std::nullopt;
  at::Tensor kept;
  auto footprint = footprintOf(tensor, kept, true);
  if (footprint && footprint->dims.size() > cuda::maximumDims) footprint = footprintOf(tensor.contiguous(), kept, true);
  return footprint ? ask(*gpu, *footprint) : std::nullopt;
}

/// Threads of LibTorch, where there is enough to do for more than one.
void onThreads(std::int64_t chunks, const std::function<void(std::int64_t)>& body) {
  constexpr std::int64_t fewest = 8;  // a million elements; fewer are done before a second thread is awake
  const ThreadScope threads(chunks > fewest ? RunThreads::forLargeWork() : 0);
  at::parallel_for(0, chunks, fewest, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) body(i);
  });
}

}  // namespace

TensorStatistics computeStatistics(const at::Tensor& tensor) {
  if (const auto found = askGpu(tensor, summariseOnDevice)) return *found;
  at::Tensor kept;
  auto footprint = footprintOf(tensor, kept);
  if (!footprint) footprint = footprintOf(plain(tensor), kept);
  return statisticsOf(*footprint, onThreads);
}

/// The values of a run that one GPU has.
class RunStatistics::OnGpu {
 public:
  OnGpu(cuda::Gpu& gpu, std::size_t capacity) : summaries_(gpu, capacity) {}

  void add(const cuda::Tensor& tensor, std::int64_t copies, TensorStatistics& result, at::Tensor kept) {
    if (summaries_.isFull()) settle();
    summaries_.add(tensor);
    open_.push_back({&result, nullptr, copies});
    kept_.push_back(std::move(kept));
  }
  /// As another one that was added before.
  void addSame(const TensorStatistics* same, TensorStatistics& result) { open_.push_back({&result, same, 1}); }

  void launch() {
    summaries_.launch();
    kept_.clear();  // LibTorch gives the memory to what comes later in the same stream
  }

  void settle() {
    launch();
    const auto found = summaries_.take();
    std::size_t next = 0;
    for (const auto& one : open_) *one.result = one.same ? *one.same : cuda::toStatistics(found[next++], one.copies);
    open_.clear();
  }

 private:
  struct Open {
    TensorStatistics* result;
    const TensorStatistics* same;
    std::int64_t copies;
  };
  cuda::Summaries summaries_;
  std::vector<Open> open_;
  std::vector<at::Tensor> kept_;
};

RunStatistics::RunStatistics(std::size_t mostValues) : mostValues_(std::max<std::size_t>(mostValues, 1)) {}
RunStatistics::~RunStatistics() = default;

RunStatistics::OnGpu* RunStatistics::onGpu(const at::Tensor& tensor) {
  auto* gpu = gpuOf(tensor);
  if (!gpu) return nullptr;
  auto& found = gpus_[tensor.device().index()];
  if (!found) found = std::make_unique<OnGpu>(*gpu, mostValues_);
  return found.get();
}

void RunStatistics::add(StorageId storage, const at::Tensor& tensor, TensorStatistics& result) {
  auto* gpu = onGpu(tensor);
  const bool asItLies = storage && tensor.layout() == at::kStrided && (tensor.is_cpu() || gpu) && !tensor.is_neg();
  at::Tensor kept;
  auto footprint = asItLies || gpu ? footprintOf(tensor, kept, gpu != nullptr) : std::nullopt;
  if (gpu && footprint && footprint->dims.size() > cuda::maximumDims)
    footprint = footprintOf(tensor.contiguous(), kept, true);
  if (!footprint) {
    result = computeStatistics(tensor);
    return;
  }
  if (asItLies && kept.is_same(tensor)) {
    auto& known = known_[storage];
    for (const auto& earlier : known)
      if (earlier.footprint == *footprint) {
        if (gpu) gpu->addSame(earlier.statistics, result);
        else result = *earlier.statistics;
        return;
      }
    known.push_back({*footprint, &result});
  }
  if (gpu) gpu->add(*cuda::tensorOf(*footprint), footprint->copies, result, std::move(kept));
  else result = statisticsOf(*footprint, onThreads);
}

void RunStatistics::written(StorageId storage) { known_.erase(storage); }
void RunStatistics::allWritten() { known_.clear(); }

void RunStatistics::endOp() {
  for (auto& [index, gpu] : gpus_) gpu->launch();
}

void RunStatistics::settle() {
  for (auto& [index, gpu] : gpus_) gpu->settle();
}

std::vector<std::int64_t> computeMagnitudes(const at::Tensor& tensor) {
  if (auto counts = askGpu(tensor, magnitudesOnDevice)) return std::move(*counts);
  const auto t = plain(tensor);
  std::vector<std::int64_t> counts(cuda::magnitudeCells, 0);
  const double normal = smallestNormal(t.scalar_type());
  forEachElement(t, [&](double x) { ++counts[cuda::magnitudeCell(x, normal)]; });
  return counts;
}

std::vector<std::int64_t> computeHistogram(const at::Tensor& tensor, int bins) {
  bins = std::max(bins, 1);
  if (auto counts = askGpu(tensor, [&](auto& gpu, const auto& all) { return histogramOnDevice(gpu, all, bins); }))
    return std::move(*counts);
  const auto t = plain(tensor);
  std::vector<std::int64_t> counts(bins, 0);
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  forEachElement(t, [&](double x) {
    if (!std::isfinite(x)) return;
    least = std::min(least, x);
    greatest = std::max(greatest, x);
  });
  if (least > greatest) return counts;
  const auto cells = cuda::linearCells(least, greatest, bins);
  forEachElement(t, [&](double x) {
    if (std::isfinite(x)) ++counts[cuda::linearCell(x, cells)];
  });
  return counts;
}

bool hasBadNumber(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() && !tensor.is_complex()) return false;
  const auto statistics = computeStatistics(tensor);
  return statistics.nan + statistics.inf > 0;
}

}  // namespace retrograd

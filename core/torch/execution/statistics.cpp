#include "core/torch/execution/statistics.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/torch/execution/cuda/summary.h"
#include "core/torch/execution/device_statistics.h"
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

/// As the pass takes it: on the CPU, strided, in a dtype of ours. `kept` holds what had to be copied.
std::optional<StridedNumbers> numbersOf(const at::Tensor& tensor, at::Tensor& kept) {
  kept = tensor;
  if (tensor.layout() != at::kStrided || !tensor.is_cpu() ||
      tensor.is_neg()) {  // the usual needs no op, which costs more than a small tensor's pass
    kept = tensor.detach();
    if (kept.layout() != at::kStrided) kept = kept.to_dense();
    kept = kept.resolve_neg().to(at::kCPU);  // conjugation leaves absolute values alone
  }
  const auto dtype = findDType(kept.scalar_type());
  if (!dtype) return std::nullopt;
  return StridedNumbers{*dtype, kept.const_data_ptr(), kept.sizes().vec(), kept.strides().vec()};
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
  if (const auto summary = summariseOnDevice(tensor)) return summary->statistics;
  at::Tensor kept;
  auto numbers = numbersOf(tensor, kept);
  if (!numbers) numbers = numbersOf(plain(tensor), kept);
  return statisticsOf(Footprint(*numbers), onThreads);
}

TensorStatistics RunStatistics::of(StorageId storage, const at::Tensor& tensor) {
  const bool asItLies = storage && tensor.layout() == at::kStrided && tensor.is_cpu() && !tensor.is_neg();
  at::Tensor kept;
  const auto numbers = asItLies ? numbersOf(tensor, kept) : std::nullopt;
  if (!numbers) return computeStatistics(tensor);
  Footprint footprint(*numbers);
  auto& known = known_[storage];
  for (const auto& earlier : known)
    if (earlier.footprint == footprint) return earlier.statistics;
  known.push_back({footprint, statisticsOf(footprint, onThreads)});
  return known.back().statistics;
}

void RunStatistics::written(StorageId storage) { known_.erase(storage); }

std::vector<std::int64_t> computeMagnitudes(const at::Tensor& tensor) {
  if (auto summary = summariseOnDevice(tensor)) return std::move(summary->magnitudes);
  const auto t = plain(tensor);
  std::vector<std::int64_t> counts(cuda::magnitudeCells, 0);
  const double normal = smallestNormal(t.scalar_type());
  forEachElement(t, [&](double x) { ++counts[cuda::magnitudeCell(x, normal)]; });
  return counts;
}

std::vector<std::int64_t> computeHistogram(const at::Tensor& tensor, int bins) {
  bins = std::max(bins, 1);
  if (auto counts = histogramOnDevice(tensor, bins)) return *counts;
  const auto t = plain(tensor);
  std::vector<std::int64_t> counts(bins, 0);
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  forEachElement(t, [&](double x) {
    if (!std::isfinite(x)) return;
    least = std::min(least, x);
    greatest = std::max(greatest, x);
  });
  if (least > greatest) return counts;
  const double scale = cuda::linearScale(least, greatest, bins);
  forEachElement(t, [&](double x) {
    if (std::isfinite(x)) ++counts[cuda::linearCell(x, least, scale, bins)];
  });
  return counts;
}

bool hasBadNumber(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() && !tensor.is_complex()) return false;
  const auto statistics = computeStatistics(tensor);
  return statistics.nan + statistics.inf > 0;
}

}  // namespace retrograd

#include "core/torch/execution/statistics.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/torch/execution/cuda/summary.h"
#include "core/torch/execution/device_statistics.h"

namespace retrograd {
namespace {

/// Elements in order, on the CPU, in a dtype the loops know.
at::Tensor plain(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  const bool asIs = tensor.layout() == at::kStrided && tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_neg();
  if (asIs && (type == at::kFloat || type == at::kLong || type == at::kBool || type == at::kDouble)) return tensor;  // the usual, without an op
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
  const auto* data = t.const_data_ptr<Scalar>();
  for (std::int64_t i = 0, n = t.numel(); i < n; ++i) visit(static_cast<double>(data[i]));
}

template <class Visit>
void forEachElement(const at::Tensor& t, Visit&& visit) {
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, t.scalar_type(), "statistics", [&] { forEach<scalar_t>(t, visit); });
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

/// Moments of some elements, mergeable.
struct Moments {
  std::int64_t count = 0;
  double mean = 0, squares = 0;  ///< sum of squared distances from the mean

  /// Chan, Golub and LeVeque's update of two sets' moments.
  void merge(const Moments& other) {
    if (other.count == 0) return;
    const auto total = static_cast<double>(count + other.count);
    const double delta = other.mean - mean;
    squares += other.squares + delta * delta * static_cast<double>(count) * static_cast<double>(other.count) / total;
    mean += delta * static_cast<double>(other.count) / total;
    count += other.count;
  }
};

/// One pass in blocks that fit the cache, in lanes that the compiler can keep in vector registers. Distances are taken from an element of
/// the block, so that nothing cancels. What is not finite counts as that element, and is looked at again where there is some.
class StatisticsPass {
 public:
  explicit StatisticsPass(double normal) : normal_(normal) {}

  template <class Scalar>
  void run(const Scalar* data, std::int64_t count) {
    result_.elements = count;
    for (std::int64_t begin = 0; begin < count; begin += blockSize) block(data + begin, std::min(blockSize, count - begin));
    result_.mean = all_.mean;
    result_.norm = std::sqrt(norm_);
    result_.standardDeviation = all_.count > 1 ? std::sqrt(all_.squares / static_cast<double>(all_.count - 1)) : 0;
  }
  const TensorStatistics& result() const { return result_; }

 private:
  static constexpr std::int64_t blockSize = 4096;
  static constexpr int lanes = 8;

  template <class Scalar>
  void block(const Scalar* data, std::int64_t count) {
    std::int64_t first = 0;
    while (first < count && !std::isfinite(static_cast<double>(data[first]))) ++first;
    if (first == count) return countBad(data, count);
    const double shift = static_cast<double>(data[first]);
    double sum[lanes] = {}, squares[lanes] = {}, norm[lanes] = {}, least[lanes], greatest[lanes], zeros[lanes] = {}, bad[lanes] = {}, small[lanes] = {};
    std::fill_n(least, lanes, shift);
    std::fill_n(greatest, lanes, shift);
    const auto one = [&](double x, int lane) {
      const bool finite = std::abs(x) <= std::numeric_limits<double>::max();
      const double value = finite ? x : shift, distance = value - shift, size = std::abs(value);
      sum[lane] += distance;
      squares[lane] += distance * distance;
      norm[lane] += finite ? value * value : 0;
      least[lane] = std::min(least[lane], value);
      greatest[lane] = std::max(greatest[lane], value);
      zeros[lane] += finite && size == 0 ? 1 : 0;
      small[lane] += finite && size < normal_ ? 1 : 0;
      bad[lane] += finite ? 0 : 1;
    };
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (int lane = 0; lane < lanes; ++lane) one(static_cast<double>(data[i + lane]), lane);
    for (; i < count; ++i) one(static_cast<double>(data[i]), 0);
    double total = 0, totalSquares = 0, totalBad = 0, totalZeros = 0, totalSmall = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      total += sum[lane];
      totalSquares += squares[lane];
      totalBad += bad[lane];
      totalZeros += zeros[lane];
      totalSmall += small[lane];
      norm_ += norm[lane];
      result_.min = all_.count || lane ? std::min(result_.min, least[lane]) : least[lane];
      result_.max = all_.count || lane ? std::max(result_.max, greatest[lane]) : greatest[lane];
    }
    result_.zeros += static_cast<std::int64_t>(totalZeros);
    result_.subnormal += normal_ > 0 ? static_cast<std::int64_t>(totalSmall - totalZeros) : 0;
    if (totalBad > 0) countBad(data, count);
    // Elements that are not finite stood in at distance 0.
    Moments moments;
    moments.count = count - static_cast<std::int64_t>(totalBad);
    const double mean = total / static_cast<double>(moments.count);
    moments.mean = shift + mean;
    moments.squares = std::max(0.0, totalSquares - total * mean);
    all_.merge(moments);
  }

  template <class Scalar>
  void countBad(const Scalar* data, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = static_cast<double>(data[i]);
      result_.nan += std::isnan(x);
      result_.inf += std::isinf(x);
    }
  }

  double normal_, norm_ = 0;
  Moments all_;
  TensorStatistics result_;
};

}  // namespace

TensorStatistics computeStatistics(const at::Tensor& tensor) {
  if (const auto summary = summariseOnDevice(tensor)) return summary->statistics;
  const auto t = plain(tensor);
  StatisticsPass pass(smallestNormal(t.scalar_type()));
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, t.scalar_type(), "statistics", [&] { pass.run(t.const_data_ptr<scalar_t>(), t.numel()); });
  return pass.result();
}

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
  if (const auto summary = summariseOnDevice(tensor)) return summary->statistics.nan + summary->statistics.inf > 0;
  const auto t = plain(tensor);
  bool bad = false;
  forEachElement(t, [&](double x) { bad |= !std::isfinite(x); });
  return bad;
}

}  // namespace retrograd

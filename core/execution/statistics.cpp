#include "core/execution/statistics.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace retrograd {
namespace {

/// Elements in order, on the CPU, in a dtype the loops know.
at::Tensor plain(const at::Tensor& tensor) {
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
    default: t = t.to(at::kFloat);
  }
  return t.to(at::kCPU).contiguous();
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

}  // namespace

TensorStatistics computeStatistics(const at::Tensor& tensor) {
  const auto t = plain(tensor);
  TensorStatistics s;
  s.elements = t.numel();
  const double normal = smallestNormal(t.scalar_type());
  std::int64_t finite = 0;
  double mean = 0, squares = 0, sumOfSquares = 0;
  forEachElement(t, [&](double x) {
    if (std::isnan(x)) { ++s.nan; return; }
    if (std::isinf(x)) { ++s.inf; return; }
    if (x == 0) ++s.zeros;
    else if (std::abs(x) < normal) ++s.subnormal;
    s.min = finite ? std::min(s.min, x) : x;
    s.max = finite ? std::max(s.max, x) : x;
    ++finite;
    const double delta = x - mean;  // Welford: one pass, no cancellation
    mean += delta / static_cast<double>(finite);
    squares += delta * (x - mean);
    sumOfSquares += x * x;
  });
  s.mean = mean;
  s.norm = std::sqrt(sumOfSquares);
  s.standardDeviation = finite > 1 ? std::sqrt(squares / static_cast<double>(finite - 1)) : 0;
  return s;
}

std::vector<std::int64_t> computeHistogram(const at::Tensor& tensor, int bins) {
  const auto t = plain(tensor);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(std::max(bins, 1)), 0);
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  forEachElement(t, [&](double x) {
    if (!std::isfinite(x)) return;
    least = std::min(least, x);
    greatest = std::max(greatest, x);
  });
  if (least > greatest) return counts;
  const double scale = greatest > least ? static_cast<double>(counts.size()) / (greatest - least) : 0;
  forEachElement(t, [&](double x) {
    if (!std::isfinite(x)) return;
    const auto cell = static_cast<std::size_t>((x - least) * scale);
    ++counts[std::min(cell, counts.size() - 1)];
  });
  return counts;
}

bool hasBadNumber(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() && !tensor.is_complex()) return false;
  const auto t = plain(tensor);
  bool bad = false;
  forEachElement(t, [&](double x) { bad |= !std::isfinite(x); });
  return bad;
}

}  // namespace retrograd

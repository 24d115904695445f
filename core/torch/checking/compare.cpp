#include "core/torch/checking/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace retrograd {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double fromHalf(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0x1f)
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double loadHalf(const std::byte* at) { return fromHalf(load<std::uint16_t>(at)); }
double loadBrain(const std::byte* at) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16);
}
template <class T>
double loadAs(const std::byte* at) {
  return static_cast<double>(load<T>(at));
}

/// How to read one real component of an element.
double (*reader(DType dtype))(const std::byte*) {
  switch (dtype) {
    case DType::i8: return loadAs<std::int8_t>;
    case DType::i16: return loadAs<std::int16_t>;
    case DType::u16: return loadAs<std::uint16_t>;
    case DType::i32: return loadAs<std::int32_t>;
    case DType::u32: return loadAs<std::uint32_t>;
    case DType::i64: return loadAs<std::int64_t>;
    case DType::u64: return loadAs<std::uint64_t>;
    case DType::f16:
    case DType::c32: return loadHalf;
    case DType::bf16: return loadBrain;
    case DType::f32:
    case DType::c64: return loadAs<float>;
    case DType::f64:
    case DType::c128: return loadAs<double>;
    default: return loadAs<std::uint8_t>;  // bool, u8, and the bits of eight-bit floats
  }
}

/// Calls `visit` with the address of each element, in order.
template <class Visit>
void forEachElement(const TensorData& tensor, Visit&& visit) {
  const auto& meta = tensor.meta;
  const auto item = itemSize(meta.dtype);
  const auto count = meta.elements();
  if (meta.strides == contiguousStrides(meta.sizes)) {
    for (std::int64_t n = 0; n < count; ++n) visit(tensor.data + (meta.offset + n) * item);
    return;
  }
  std::vector<std::int64_t> index(meta.sizes.size());
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t at = meta.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * meta.strides[d];
    visit(tensor.data + at * item);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] != meta.sizes[d]) break;
      index[d] = 0;
    }
  }
}

std::vector<std::int64_t> realSizes(const TensorMeta& meta) {
  auto sizes = meta.sizes;
  if (isComplex(meta.dtype)) sizes.push_back(2);
  return sizes;
}

DType realType(DType dtype) {
  switch (dtype) {
    case DType::c32: return DType::f16;
    case DType::c64: return DType::f32;
    case DType::c128: return DType::f64;
    default: return dtype;
  }
}

std::string describe(const TensorMeta& meta) {
  return fmt::format("{}[{}]", shortName(meta.dtype), fmt::join(meta.sizes, ", "));
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? infinity : d;
}

/// Floats that LibTorch only stores: nothing is computed in them, so that a distance between two means nothing.
bool isEightBits(DType dtype) { return isFloating(dtype) && itemSize(dtype) == 1; }

std::string elementsAre(std::size_t count, const char* what) {
  return fmt::format("{} element{} {}", count, count == 1 ? " is" : "s are", what);
}

/// What is not finite on one side only, in words.
std::string describeNonFinite(const std::vector<double>& actual, const std::vector<double>& expected) {
  std::size_t nan = 0, infinite = 0, finite = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isfinite(distance(actual[i], expected[i]))) continue;
    if (std::isnan(actual[i])) ++nan;
    else if (std::isinf(actual[i])) ++infinite;
    else ++finite;
  }
  std::string text;
  const auto say = [&](std::size_t count, const char* what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + elementsAre(count, what);
  };
  say(nan, "NaN where it is not expected");
  say(infinite, "infinite where it is not expected");
  say(finite, "finite where NaN or infinity is expected");
  return text;
}

}  // namespace

std::vector<double> asDoubles(const TensorData& tensor) {
  const auto read = reader(tensor.meta.dtype);
  const std::size_t part = itemSize(tensor.meta.dtype) / 2;
  const bool complex = isComplex(tensor.meta.dtype);
  // The lazy bits stand in the meta where a tensor was not resolved.
  const double sign = tensor.meta.negative ? -1 : 1, imaginarySign = tensor.meta.conjugate ? -sign : sign;
  std::vector<double> values;
  values.reserve(tensor.meta.elements() * (complex ? 2 : 1));
  forEachElement(tensor, [&](const std::byte* at) {
    values.push_back(sign * read(at));
    if (complex) values.push_back(imaginarySign * read(at + part));
  });
  return values;
}

bool identical(const TensorData& a, const TensorData& b) {
  if (a.meta.dtype != b.meta.dtype || a.meta.sizes != b.meta.sizes) return false;
  const std::size_t item = itemSize(a.meta.dtype);
  std::vector<const std::byte*> elements;
  elements.reserve(a.meta.elements());
  forEachElement(a, [&](const std::byte* at) { elements.push_back(at); });
  std::size_t next = 0;
  bool same = true;
  forEachElement(b, [&](const std::byte* at) { same &= std::memcmp(elements[next++], at, item) == 0; });
  return same;
}

bool isZero(const TensorData& tensor) {
  for (double value : asDoubles(tensor))
    if (value != 0) return false;
  return true;
}

NonFinite countNonFinite(const TensorData& tensor) {
  NonFinite count;
  if (isEightBits(tensor.meta.dtype)) return count;
  for (const double value : asDoubles(tensor)) {
    count.nan += std::isnan(value);
    count.infinite += std::isinf(value);
  }
  return count;
}

std::string shapeDifference(const TensorData& actual, const TensorData& expected, bool anyFloatType) {
  const auto a = realType(actual.meta.dtype), e = realType(expected.meta.dtype);
  const bool sameType = a == e || (anyFloatType && isFloating(a) && isFloating(e));
  if (sameType && realSizes(actual.meta) == realSizes(expected.meta)) return {};
  return fmt::format("is {}, expected {}", describe(actual.meta), describe(expected.meta));
}

Deviation difference(const TensorData& actual, const TensorData& expected, bool anyFloatType) {
  Deviation found;
  const auto fail = [&](std::string reason) {
    found.failure = std::move(reason);
    found.deviation = infinity;
    return found;
  };
  if (auto shape = shapeDifference(actual, expected, anyFloatType); !shape.empty()) return fail(std::move(shape));
  const auto x = asDoubles(actual), y = asDoubles(expected);
  const bool byBits = isEightBits(actual.meta.dtype) || isEightBits(expected.meta.dtype);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto apart = distance(x[i], y[i]);
    differing += apart > 0;
    found.deviation = std::max(found.deviation, apart);
    if (std::isfinite(y[i])) found.scale = std::max(found.scale, std::abs(y[i]));
  }
  if (byBits) {
    found.deviation = found.scale = 0;
    if (differing > 0)
      return fail(fmt::format("{} of {} elements have other bits ({} is compared for equality only)", differing,
                              x.size(), shortName(actual.meta.dtype)));
    return found;
  }
  if (!std::isfinite(found.deviation)) return fail(describeNonFinite(x, y));
  // Whole numbers beyond 2^53 that a double does not tell apart.
  const bool whole = !isDifferentiable(actual.meta.dtype) && actual.meta.dtype == expected.meta.dtype;
  if (whole && found.deviation == 0 && !identical(actual, expected)) found.deviation = 1;
  return found;
}

}  // namespace retrograd

#include "core/checking/compare.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace retrograd {
namespace {

double fromHalf(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0x1f) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double loadHalf(const std::byte* at) { return fromHalf(load<std::uint16_t>(at)); }
double loadBrain(const std::byte* at) { return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16); }
template <class T>
double loadAs(const std::byte* at) {
  return static_cast<double>(load<T>(at));
}

/// How to read one real component of an element.
double (*reader(DType dtype))(const std::byte*) {
  switch (dtype) {
    case DType::i8:
      return loadAs<std::int8_t>;
    case DType::i16:
      return loadAs<std::int16_t>;
    case DType::u16:
      return loadAs<std::uint16_t>;
    case DType::i32:
      return loadAs<std::int32_t>;
    case DType::u32:
      return loadAs<std::uint32_t>;
    case DType::i64:
      return loadAs<std::int64_t>;
    case DType::u64:
      return loadAs<std::uint64_t>;
    case DType::f16:
    case DType::c32:
      return loadHalf;
    case DType::bf16:
      return loadBrain;
    case DType::f32:
    case DType::c64:
      return loadAs<float>;
    case DType::f64:
    case DType::c128:
      return loadAs<double>;
    default:
      return loadAs<std::uint8_t>;  // bool, u8, and the bits of eight-bit floats
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
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == meta.sizes[d];) index[d] = 0;
  }
}

std::vector<std::int64_t> realSizes(const TensorMeta& meta) {
  auto sizes = meta.sizes;
  if (isComplex(meta.dtype)) sizes.push_back(2);
  return sizes;
}

DType realType(DType dtype) {
  switch (dtype) {
    case DType::c32:
      return DType::f16;
    case DType::c64:
      return DType::f32;
    case DType::c128:
      return DType::f64;
    default:
      return dtype;
  }
}

std::string describe(const TensorMeta& meta) { return fmt::format("{}[{}]", shortName(meta.dtype), fmt::join(meta.sizes, ", ")); }

double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace

std::vector<double> asDoubles(const TensorData& tensor) {
  const auto read = reader(tensor.meta.dtype);
  const auto part = static_cast<std::size_t>(itemSize(tensor.meta.dtype)) / 2;
  const bool complex = isComplex(tensor.meta.dtype);
  // The lazy bits stand in the meta where a tensor was not resolved.
  const double sign = tensor.meta.negative ? -1 : 1, imaginarySign = tensor.meta.conjugate ? -sign : sign;
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(tensor.meta.elements()) * (complex ? 2 : 1));
  forEachElement(tensor, [&](const std::byte* at) {
    values.push_back(sign * read(at));
    if (complex) values.push_back(imaginarySign * read(at + part));
  });
  return values;
}

bool identical(const TensorData& a, const TensorData& b) {
  if (a.meta.dtype != b.meta.dtype || a.meta.sizes != b.meta.sizes) return false;
  const auto item = static_cast<std::size_t>(itemSize(a.meta.dtype));
  std::vector<const std::byte*> elements;
  elements.reserve(static_cast<std::size_t>(a.meta.elements()));
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

bool Comparison::sameShape(const std::string& name, const TensorData& actual, const TensorData& expected, bool anyFloatType) {
  ++count_;
  const auto a = realType(actual.meta.dtype), e = realType(expected.meta.dtype);
  const bool sameType = a == e || (anyFloatType && isFloating(a) && isFloating(e));
  if (sameType && realSizes(actual.meta) == realSizes(expected.meta)) return true;
  fail(name, fmt::format("is {}, expected {}", describe(actual.meta), describe(expected.meta)));
  return false;
}

void Comparison::addShape(const std::string& name, const TensorData& actual, const TensorData& expected) {
  sameShape(name, actual, expected, false);
}

void Comparison::add(const std::string& name, const TensorData& actual, const TensorData& expected, bool anyFloatType) {
  if (!sameShape(name, actual, expected, anyFloatType)) return;
  const auto x = asDoubles(actual), y = asDoubles(expected);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, difference(x[i], y[i]));
    if (std::isfinite(y[i])) largestExpected_ = std::max(largestExpected_, std::abs(y[i]));
  }
  if (!std::isfinite(largest)) return fail(name, "NaN or infinity where the other has none");
  if (largest > largestDifference_) {
    largestDifference_ = largest;
    if (failure_.empty()) worst_ = name;
  }
}

void Comparison::fail(const std::string& name, std::string reason) {
  if (!failure_.empty()) return;
  failure_ = name + ": " + std::move(reason);
  worst_ = name;
}

double Comparison::error() const {
  if (!failure_.empty()) return std::numeric_limits<double>::infinity();
  if (largestDifference_ == 0) return 0;
  return largestExpected_ > 0 ? largestDifference_ / largestExpected_ : std::numeric_limits<double>::infinity();
}

}  // namespace retrograd

#include "core/torch/judging/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

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

/// The addresses of a tensor's elements, one after the other, row by row.
class Elements {
 public:
  explicit Elements(const TensorData& tensor)
      : meta_(tensor.meta),
        item_(itemSize(meta_.dtype)),
        at_(tensor.data + meta_.offset * item_),
        index_(meta_.strides == contiguousStrides(meta_.sizes) ? 0 : meta_.sizes.size()) {}

  const std::byte* next() {
    const auto* here = at_;
    if (index_.empty()) at_ += item_;
    for (std::size_t d = index_.size(); d-- > 0;) {
      at_ += meta_.strides[d] * item_;
      if (++index_[d] != meta_.sizes[d]) break;
      at_ -= index_[d] * meta_.strides[d] * item_;
      index_[d] = 0;
    }
    return here;
  }

 private:
  const TensorMeta& meta_;
  const std::int64_t item_;
  const std::byte* at_;
  std::vector<std::int64_t> index_;  // empty where the elements lie one after the other
};

/// A tensor of this type in memory of its own, row by row: of the elements that `next` gives.
template <class Next>
TensorData rowByRow(const TensorMeta& meta, Next&& next) {
  const auto item = static_cast<std::size_t>(itemSize(meta.dtype));
  auto own = meta;
  own.offset = 0;
  own.strides = contiguousStrides(meta.sizes);
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(meta.elements()) * item);
  for (auto* to = bytes->data(); to != bytes->data() + bytes->size(); to += item) std::memcpy(to, next(), item);
  return {own, bytes->data(), bytes->size(), bytes};
}

/// A tensor's numbers, one after the other; complex ones as real part, imaginary part. Reads no more than one element
/// at a time: tensors may be as large as the memory allows.
class Numbers {
 public:
  explicit Numbers(const TensorData& tensor)
      : elements_(tensor),
        read_(reader(tensor.meta.dtype)),
        imaginary_(isComplex(tensor.meta.dtype) ? static_cast<std::ptrdiff_t>(itemSize(tensor.meta.dtype)) / 2 : 0),
        count_(static_cast<std::size_t>(tensor.meta.elements()) * (imaginary_ != 0 ? 2 : 1)),
        // The lazy bits are in the meta where a tensor was not resolved.
        sign_(tensor.meta.negative ? -1 : 1),
        imaginarySign_(tensor.meta.conjugate ? -sign_ : sign_) {}

  std::size_t count() const { return count_; }
  double next() {
    if (!second_) {
      element_ = elements_.next();
      second_ = imaginary_ != 0;
      return sign_ * read_(element_);
    }
    second_ = false;
    return imaginarySign_ * read_(element_ + imaginary_);
  }

 private:
  Elements elements_;
  double (*const read_)(const std::byte*);
  const std::ptrdiff_t imaginary_;  // where an element's imaginary part is; 0 where it has none
  const std::size_t count_;
  const double sign_, imaginarySign_;
  const std::byte* element_ = nullptr;
  bool second_ = false;
};

std::vector<std::int64_t> realSizes(const TensorMeta& meta) {
  auto sizes = meta.sizes;
  if (isComplex(meta.dtype)) sizes.push_back(2);
  return sizes;
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
std::string describeNonFinite(const TensorData& actual, const TensorData& expected) {
  Numbers x(actual), y(expected);
  std::size_t nan = 0, infinite = 0, finite = 0;
  for (std::size_t i = 0; i < x.count(); ++i) {
    const auto number = x.next();
    if (std::isfinite(distance(number, y.next()))) continue;
    if (std::isnan(number)) ++nan;
    else if (std::isinf(number)) ++infinite;
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

DType realType(DType dtype) {
  switch (dtype) {
    case DType::c32: return DType::f16;
    case DType::c64: return DType::f32;
    case DType::c128: return DType::f64;
    default: return dtype;
  }
}

const TensorData* findTensor(const TensorMap& map, const std::string& name) {
  const auto it = map.find(name);
  return it == map.end() ? nullptr : &it->second;
}

std::vector<double> asDoubles(const TensorData& tensor) {
  Numbers numbers(tensor);
  std::vector<double> values(numbers.count());
  for (auto& value : values) value = numbers.next();
  return values;
}

bool identical(const TensorData& a, const TensorData& b) {
  if (a.meta.dtype != b.meta.dtype || a.meta.sizes != b.meta.sizes) return false;
  const std::size_t item = itemSize(a.meta.dtype);
  Elements x(a), y(b);
  for (auto left = a.meta.elements(); left > 0; --left)
    if (std::memcmp(x.next(), y.next(), item) != 0) return false;
  return true;
}

bool isZero(const TensorData& tensor) {
  Numbers numbers(tensor);
  for (auto left = numbers.count(); left > 0; --left)
    if (numbers.next() != 0) return false;
  return true;
}

bool isTimes(const TensorData& a, const TensorData& b, double factor) {
  if (a.meta.dtype != b.meta.dtype || a.meta.sizes != b.meta.sizes) return false;
  Numbers x(a), y(b);
  for (auto left = x.count(); left > 0; --left)
    if (distance(x.next(), factor * y.next()) != 0) return false;
  return true;
}

TensorData finiteOr(const TensorData& tensor, const TensorData& other) {
  const std::size_t parts = isComplex(tensor.meta.dtype) ? 2 : 1;
  Elements own(tensor), others(other);
  Numbers ownNumbers(tensor), otherNumbers(other);
  const auto isFinite = [&](Numbers& numbers) {
    bool finite = true;
    for (std::size_t part = 0; part < parts; ++part) finite &= std::isfinite(numbers.next());
    return finite;
  };
  return rowByRow(tensor.meta, [&] {
    const auto *element = own.next(), *instead = others.next();
    const bool isOwn = isFinite(ownNumbers), isOther = isFinite(otherNumbers);
    return isOwn || !isOther ? element : instead;
  });
}

TensorData rowByRow(const TensorData& tensor) {
  if (tensor.meta.offset == 0 && tensor.meta.strides == contiguousStrides(tensor.meta.sizes)) return tensor;
  Elements elements(tensor);
  return rowByRow(tensor.meta, [&] { return elements.next(); });
}

NonFinite countNonFinite(const TensorData& tensor) {
  NonFinite count;
  if (isEightBits(tensor.meta.dtype)) return count;
  Numbers numbers(tensor);
  for (auto left = numbers.count(); left > 0; --left) {
    const auto number = numbers.next();
    count.nan += std::isnan(number);
    count.infinite += std::isinf(number);
  }
  return count;
}

std::string shapeDifference(const TensorData& actual, const TensorData& expected, bool anyFloatType) {
  const auto a = realType(actual.meta.dtype), e = realType(expected.meta.dtype);
  const bool sameType = a == e || (anyFloatType && isFloating(a) && isFloating(e));
  if (sameType && realSizes(actual.meta) == realSizes(expected.meta)) return {};
  return fmt::format("is {}, expected {}", describe(actual.meta), describe(expected.meta));
}

Measure difference(const TensorData& actual, const TensorData& expected, bool anyFloatType) {
  Measure found;
  const auto fail = [&](std::string reason) {
    found.failure = std::move(reason);
    found.deviation = infinity;
    return found;
  };
  if (auto shape = shapeDifference(actual, expected, anyFloatType); !shape.empty()) return fail(std::move(shape));
  Numbers x(actual), y(expected);
  const bool byBits = isEightBits(actual.meta.dtype) || isEightBits(expected.meta.dtype);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < x.count(); ++i) {
    const auto wanted = y.next(), apart = distance(x.next(), wanted);
    differing += apart > 0;
    found.deviation = std::max(found.deviation, apart);
    if (std::isfinite(wanted)) found.scale = std::max(found.scale, std::abs(wanted));
  }
  if (byBits) {
    found.deviation = found.scale = 0;
    if (differing > 0)
      return fail(fmt::format("{} of {} elements have other bits ({} is compared for equality only)", differing,
                              x.count(), shortName(actual.meta.dtype)));
    return found;
  }
  if (!std::isfinite(found.deviation)) return fail(describeNonFinite(actual, expected));
  // Whole numbers beyond 2^53 that a double does not distinguish.
  const bool whole = !isDifferentiable(actual.meta.dtype) && actual.meta.dtype == expected.meta.dtype;
  if (whole && found.deviation == 0 && !identical(actual, expected)) found.deviation = 1;
  return found;
}

std::optional<double> commonFactor(const std::set<std::string>& names, const TensorMap& actual,
                                   const TensorMap& expected) {
  constexpr double tolerance = 1e-3;
  std::vector<std::pair<std::vector<double>, std::vector<double>>> pairs;
  double products = 0, squares = 0;
  for (const auto& name : names) {
    const auto *a = findTensor(actual, name), *e = findTensor(expected, name);
    if (!a || !e) return std::nullopt;
    auto& [x, y] = pairs.emplace_back(asDoubles(*a), asDoubles(*e));
    if (x.size() != y.size()) return std::nullopt;
    for (std::size_t i = 0; i < x.size(); ++i) products += x[i] * y[i], squares += x[i] * x[i];
  }
  const double factor = products / squares;
  if (!std::isfinite(factor)) return std::nullopt;
  for (const auto& [x, y] : pairs) {
    double apart = 0, scale = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      apart = std::max(apart, std::abs(y[i] - factor * x[i]));
      scale = std::max({scale, std::abs(y[i]), std::abs(factor * x[i])});
    }
    if (apart > tolerance * scale) return std::nullopt;
  }
  return factor;
}

}  // namespace retrograd

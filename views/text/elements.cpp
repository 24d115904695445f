#include "views/text/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// A small float of `exponentBits` and `mantissaBits`. Without infinities all but one pattern of the top exponent are
/// numbers.
double smallFloat(unsigned bits, int exponentBits, int mantissaBits, int bias, bool infinities) {
  const int sign = (bits >> (exponentBits + mantissaBits)) & 1 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissaBits) - 1);
  if (infinities && exponent == (1 << exponentBits) - 1)
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  const double fraction = static_cast<double>(mantissa) / (1 << mantissaBits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1 + fraction, exponent - bias);
}

double float8(DType dtype, unsigned bits) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  switch (dtype) {
    case DType::f8e4m3fn: return (bits & 0x7f) == 0x7f ? nan : smallFloat(bits, 4, 3, 7, false);
    case DType::f8e5m2: return smallFloat(bits, 5, 2, 15, true);
    case DType::f8e4m3fnuz: return bits == 0x80 ? nan : smallFloat(bits, 4, 3, 8, false);
    case DType::f8e5m2fnuz: return bits == 0x80 ? nan : smallFloat(bits, 5, 2, 16, false);
    default: return bits == 0xff ? nan : std::ldexp(1.0, static_cast<int>(bits) - 127);  // f8e8m0fnu
  }
}

QString complexText(double real, double imaginary) {
  const auto sign = std::signbit(imaginary) ? QStringLiteral("-") : QStringLiteral("+");
  return numberText(real) + sign + numberText(std::abs(imaginary)) + QLatin1Char('j');
}

std::vector<std::int64_t> indexOf(std::int64_t element, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> index(sizes.size());
  for (auto dim = sizes.size(); dim-- > 0; element /= sizes[dim]) index[dim] = element % sizes[dim];
  return index;
}

}  // namespace

QString elementText(const TensorData& data, std::int64_t element) {
  const auto dtype = data.meta.dtype;
  const auto* at = data.data + element * itemSize(dtype);
  switch (dtype) {
    case DType::b8: return read<std::uint8_t>(at) ? QStringLiteral("True") : QStringLiteral("False");
    case DType::u8: return QString::number(read<std::uint8_t>(at));
    case DType::i8: return QString::number(read<std::int8_t>(at));
    case DType::i16: return QString::number(read<std::int16_t>(at));
    case DType::u16: return QString::number(read<std::uint16_t>(at));
    case DType::i32: return QString::number(read<std::int32_t>(at));
    case DType::u32: return QString::number(read<std::uint32_t>(at));
    case DType::i64: return QString::number(read<std::int64_t>(at));
    case DType::u64: return QString::number(read<std::uint64_t>(at));
    case DType::c32:
      return complexText(smallFloat(read<std::uint16_t>(at), 5, 10, 15, true),
                         smallFloat(read<std::uint16_t>(at + 2), 5, 10, 15, true));
    case DType::c64: return complexText(static_cast<double>(read<float>(at)), static_cast<double>(read<float>(at + 4)));
    case DType::c128: return complexText(read<double>(at), read<double>(at + 8));
    default: return numberText(elementNumber(data, element));
  }
}

double elementNumber(const TensorData& data, std::int64_t element) {
  const auto dtype = data.meta.dtype;
  const auto* at = data.data + element * itemSize(dtype);
  const auto half = [](std::uint16_t bits) { return smallFloat(bits, 5, 10, 15, true); };
  switch (dtype) {
    case DType::b8: return read<std::uint8_t>(at) != 0;
    case DType::u8: return read<std::uint8_t>(at);
    case DType::i8: return read<std::int8_t>(at);
    case DType::i16: return read<std::int16_t>(at);
    case DType::u16: return read<std::uint16_t>(at);
    case DType::i32: return read<std::int32_t>(at);
    case DType::u32: return read<std::uint32_t>(at);
    case DType::i64: return static_cast<double>(read<std::int64_t>(at));
    case DType::u64: return static_cast<double>(read<std::uint64_t>(at));
    case DType::f16: return half(read<std::uint16_t>(at));
    case DType::bf16:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(at)) << 16));
    case DType::f32: return static_cast<double>(read<float>(at));
    case DType::f64: return read<double>(at);
    case DType::c32: return std::hypot(half(read<std::uint16_t>(at)), half(read<std::uint16_t>(at + 2)));
    case DType::c64: return std::hypot(static_cast<double>(read<float>(at)), static_cast<double>(read<float>(at + 4)));
    case DType::c128: return std::hypot(read<double>(at), read<double>(at + 8));
    default: return float8(dtype, read<std::uint8_t>(at));
  }
}

std::optional<std::vector<std::int64_t>> findElement(const TensorData& data, Element wanted, const Progress& progress) {
  constexpr std::int64_t stretch = 1 << 20;  // elements between two looks at whether to go on
  if (!data.data) return {};
  std::optional<std::int64_t> best;
  double most = 0;
  const auto sign = wanted == Element::smallest ? -1.0 : 1.0;
  for (std::int64_t i = 0; i < data.meta.elements(); ++i) {
    if (i % stretch == 0) progress.check();
    const double number = elementNumber(data, i);
    if (wanted == Element::firstNan) {
      if (std::isfinite(number)) continue;
      return indexOf(i, data.meta.sizes);
    }
    const double size = wanted == Element::largestMagnitude ? std::abs(number) : sign * number;
    if (std::isnan(number) || (best && size <= most)) continue;
    best = i;
    most = size;
  }
  return best ? std::optional(indexOf(*best, data.meta.sizes)) : std::nullopt;
}

std::string indexText(const std::vector<std::int64_t>& index) {
  std::string text;
  for (auto i : index) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return "[" + text + "]";
}

}  // namespace retrograd::views

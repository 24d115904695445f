// How the elements of each dtype become vectors of numbers. Highway's convention for a file that is compiled once for
// each kind of vector unit: the guard turns with each of them.
#if defined(RETROGRAD_STATISTICS_SOURCES) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_STATISTICS_SOURCES
#undef RETROGRAD_STATISTICS_SOURCES
#else
#define RETROGRAD_STATISTICS_SOURCES
#endif
#include <hwy/highway.h>

#include <limits>

#include "core/statistics/element.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<float>;
using D64 = hn::Repartition<double, D32>;
using Half32 = hn::Rebind<float, D64>;
using V32 = hn::Vec<D32>;
using V64 = hn::Vec<D64>;
using Bits16 = hn::Rebind<std::uint16_t, D32>;
using Words = hn::RebindToUnsigned<D32>;

/// How the elements of a dtype become vectors of numbers. `vectors` of them hold the `step` elements from `p` on, in
/// any order.
template <DType>
struct Source;

/// Sources whose numbers fit float32 exactly.
struct Source32 {
  using D = D32;
  static constexpr int vectors = 1;
  static HWY_INLINE std::size_t step() { return hn::Lanes(D32()); }
};

template <>
struct Source<DType::f32> : Source32 {
  static HWY_INLINE V32 vector(const float* p, int) { return hn::LoadU(D32(), p); }
};
/// Floats of sixteen bits. Highway's own way, where the unit has no instruction for it, takes infinity and NaN for
/// numbers.
HWY_INLINE V32 fromHalves(hn::Vec<Bits16> bits) {
#if HWY_TARGET > HWY_AVX2  // greater is less able
  const auto words = hn::PromoteTo(Words(), bits), magnitude = hn::And(words, hn::Set(Words(), 0x7fffu)),
             sign = hn::ShiftLeft<16>(hn::Sub(words, magnitude));
  const auto moved = hn::ShiftLeft<13>(magnitude);
  const auto number = hn::BitCast(Words(), hn::Mul(hn::BitCast(D32(), moved), hn::Set(D32(), 0x1p112f)));
  const auto special = hn::Eq(hn::And(magnitude, hn::Set(Words(), 0x7c00u)), hn::Set(Words(), 0x7c00u));
  return hn::BitCast(D32(),
                     hn::Or(sign, hn::IfThenElse(special, hn::Or(moved, hn::Set(Words(), 0x7f800000u)), number)));
#else
  return hn::PromoteTo(D32(), hn::BitCast(hn::Rebind<hwy::float16_t, D32>(), bits));
#endif
}

template <>
struct Source<DType::f16> : Source32 {
  static HWY_INLINE V32 vector(const std::uint16_t* p, int) { return fromHalves(hn::LoadU(Bits16(), p)); }
};
template <>
struct Source<DType::bf16> : Source32 {
  static constexpr int vectors = 2;  // the even elements, then the odd ones: each is the upper half of its float
  static HWY_INLINE std::size_t step() { return 2 * hn::Lanes(D32()); }
  static HWY_INLINE V32 vector(const std::uint16_t* p, int k) {
    const auto words = hn::BitCast(Words(), hn::LoadU(hn::Repartition<std::uint16_t, D32>(), p));
    return hn::BitCast(D32(), k == 0 ? hn::ShiftLeft<16>(words) : hn::And(words, hn::Set(Words(), 0xffff0000u)));
  }
};
template <class Bits>
struct SmallInteger : Source32 {
  static HWY_INLINE V32 vector(const Bits* p, int) {
    const hn::Rebind<Bits, D32> narrow;
    return hn::ConvertTo(D32(), hn::PromoteTo(hn::RebindToSigned<D32>(), hn::LoadU(narrow, p)));
  }
};
template <>
struct Source<DType::i16> : SmallInteger<std::int16_t> {};
template <>
struct Source<DType::u16> : SmallInteger<std::uint16_t> {};

/// A float of eight bits: moved to where a float of sixteen has its exponent, and scaled by the difference of the
/// biases, which makes subnormal ones right too.
template <int mantissaBits, int bias, numbers::Specials specials>
struct TinyFloat : Source32 {
  static HWY_INLINE V32 vector(const std::uint8_t* p, int) {
    const auto bits = hn::PromoteTo(Bits16(), hn::LoadU(hn::Rebind<std::uint8_t, D32>(), p));
    const auto magnitude = hn::And(bits, hn::Set(Bits16(), std::uint16_t{0x7f})),
               sign = hn::ShiftLeft<8>(hn::Sub(bits, magnitude));
    const auto moved = fromHalves(hn::Or(hn::ShiftLeft<10 - mantissaBits>(magnitude), sign));
    if constexpr (specials == numbers::Specials::ieee)
      return moved;  // sixteen bits have the same ones, and the same bias
    const auto number =
        hn::Mul(moved, hn::Set(D32(), numbers::reinterpretBits<float>(std::uint32_t{127 + 15 - bias} << 23)));
    const auto nan = hn::Set(D32(), std::numeric_limits<float>::quiet_NaN());
    const auto words = hn::PromoteTo(Words(), bits);
    if constexpr (specials == numbers::Specials::fn)
      return hn::IfThenElse(
          hn::RebindMask(D32(), hn::Eq(hn::And(words, hn::Set(Words(), 0x7fu)), hn::Set(Words(), 0x7fu))), nan, number);
    return hn::IfThenElse(hn::RebindMask(D32(), hn::Eq(words, hn::Set(Words(), 0x80u))), nan, number);
  }
};
template <>
struct Source<DType::f8e4m3fn> : TinyFloat<3, 7, numbers::Specials::fn> {};
template <>
struct Source<DType::f8e5m2> : TinyFloat<2, 15, numbers::Specials::ieee> {};
template <>
struct Source<DType::f8e4m3fnuz> : TinyFloat<3, 8, numbers::Specials::fnuz> {};
/// Its greatest exponent is a number, which sixteen bits have none for: moved to float32 instead.
template <>
struct Source<DType::f8e5m2fnuz> : Source32 {
  static HWY_INLINE V32 vector(const std::uint8_t* p, int) {
    const auto bits = hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<std::uint8_t, D32>(), p));
    const auto magnitude = hn::And(bits, hn::Set(Words(), 0x7fu)), sign = hn::ShiftLeft<24>(hn::Sub(bits, magnitude));
    const auto number = hn::Or(hn::Mul(hn::BitCast(D32(), hn::ShiftLeft<21>(magnitude)), hn::Set(D32(), 0x1p111f)),
                               hn::BitCast(D32(), sign));
    return hn::IfThenElse(hn::RebindMask(D32(), hn::Eq(bits, hn::Set(Words(), 0x80u))),
                          hn::Set(D32(), std::numeric_limits<float>::quiet_NaN()), number);
  }
};

/// For the fast pass: the floats of eight bits in a vector of words, once those of the even bytes and once those of the
/// odd ones, as floats of sixteen that are to be taken `scale` times. Their NaN is not seen here. The greatest exponent
/// of f8e5m2fnuz, a number there, becomes infinity or NaN.
template <DType dtype>
struct TinyHalves {
  static constexpr bool threeBits = dtype == DType::f8e4m3fn || dtype == DType::f8e4m3fnuz;
  static constexpr double scale = dtype == DType::f8e4m3fn     ? 0x1p8
                                  : dtype == DType::f8e4m3fnuz ? 0x1p7
                                  : dtype == DType::f8e5m2fnuz ? 0.5
                                                               : 1;
  using Pairs = hn::Repartition<std::uint16_t, D32>;
  static HWY_INLINE hn::Vec<Pairs> odd(hn::Vec<Pairs> v) {
    if constexpr (!threeBits) return hn::And(v, hn::Set(Pairs(), std::uint16_t{0xff00}));
    const auto magnitude = hn::ShiftRight<1>(hn::And(v, hn::Set(Pairs(), std::uint16_t{0x7f00})));
    return hn::Or(hn::And(v, hn::Set(Pairs(), std::uint16_t{0x8000})), magnitude);
  }
  static HWY_INLINE hn::Vec<Pairs> even(hn::Vec<Pairs> v) {
    if constexpr (threeBits) return odd(hn::ShiftLeft<8>(v));
    else return hn::ShiftLeft<8>(v);
  }
};

/// The byte is the exponent.
template <>
struct Source<DType::f8e8m0fnu> : Source32 {
  static HWY_INLINE V32 vector(const std::uint8_t* p, int) {
    const auto bits = hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<std::uint8_t, D32>(), p));
    const auto number =
        hn::IfThenElse(hn::Eq(bits, hn::Zero(Words())), hn::Set(Words(), 0x00400000u), hn::ShiftLeft<23>(bits));
    const auto nan = hn::Set(D32(), std::numeric_limits<float>::quiet_NaN());
    return hn::IfThenElse(hn::RebindMask(D32(), hn::Eq(bits, hn::Set(Words(), 0xffu))), nan,
                          hn::BitCast(D32(), number));
  }
};

/// Squares of halves fit float32, so neither a double nor a factor is needed under the root.
template <>
struct Source<DType::c32> : Source32 {
  static HWY_INLINE V32 vector(const numbers::Pair<std::uint16_t>* p, int) {
    hn::Vec<Bits16> real, imaginary;
    hn::LoadInterleaved2(Bits16(), reinterpret_cast<const std::uint16_t*>(p), real, imaginary);
    const auto x = fromHalves(real), y = fromHalves(imaginary), size = hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)));
    const auto infinity = hn::Set(D32(), std::numeric_limits<float>::infinity());
    return hn::IfThenElse(hn::Or(hn::Eq(hn::Abs(x), infinity), hn::Eq(hn::Abs(y), infinity)), infinity, size);
  }
};

/// Sources of doubles. `hashed`: the number as `absolutes` takes it.
struct Source64 {
  using D = D64;
  static constexpr int vectors = 1;
  static HWY_INLINE std::size_t step() { return hn::Lanes(D64()); }
  static HWY_INLINE V64 hashed(V64 v) { return v; }
};
struct Integer64 : Source64 {
  static HWY_INLINE V64 hashed(V64 v) { return hn::PromoteTo(D64(), hn::DemoteTo(Half32(), v)); }
};
template <>
struct Source<DType::f64> : Source64 {
  static HWY_INLINE V64 vector(const double* p, int) { return hn::LoadU(D64(), p); }
};
template <>
struct Source<DType::i32> : Integer64 {
  static HWY_INLINE V64 vector(const std::int32_t* p, int) {
    return hn::PromoteTo(D64(), hn::LoadU(hn::Rebind<std::int32_t, D64>(), p));
  }
};
template <>
struct Source<DType::i64> : Integer64 {
  static HWY_INLINE V64 vector(const std::int64_t* p, int) {
    return hn::ConvertTo(D64(), hn::LoadU(hn::Rebind<std::int64_t, D64>(), p));
  }
};
template <>
struct Source<DType::c64> : Source64 {
  static HWY_INLINE V64 vector(const numbers::Pair<float>* p, int) {
    hn::Vec<Half32> real, imaginary;
    hn::LoadInterleaved2(Half32(), reinterpret_cast<const float*>(p), real, imaginary);
    const auto x = hn::PromoteTo(D64(), real), y = hn::PromoteTo(D64(), imaginary),
               size = hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)));
    const auto infinity = hn::Set(D64(), std::numeric_limits<double>::infinity());
    return hn::IfThenElse(hn::Or(hn::Eq(hn::Abs(x), infinity), hn::Eq(hn::Abs(y), infinity)), infinity, size);
  }
};

/// The parts are scaled by the larger one, or their squares would leave the range of a double.
template <>
struct Source<DType::c128> : Source64 {
  static HWY_INLINE V64 vector(const numbers::Pair<double>* p, int) {
    V64 real, imaginary;
    hn::LoadInterleaved2(D64(), reinterpret_cast<const double*>(p), real, imaginary);
    const auto x = hn::Abs(real), y = hn::Abs(imaginary),
               infinity = hn::Set(D64(), std::numeric_limits<double>::infinity());
    const auto greater = hn::Max(x, y), ratio = hn::Div(hn::Min(x, y), greater);
    const auto size = hn::Mul(greater, hn::Sqrt(hn::MulAdd(ratio, ratio, hn::Set(D64(), 1.0))));
    const auto sum = hn::Add(x, y);  // NaN where a part is, 0 where both are
    const auto usual = hn::And(hn::Gt(sum, hn::Zero(D64())), hn::Lt(sum, infinity));
    return hn::IfThenElse(hn::Or(hn::Eq(x, infinity), hn::Eq(y, infinity)), infinity, hn::IfThenElse(usual, size, sum));
  }
};
/// Whole numbers below 2^52 as the mantissa of a double, and the upper half of 64 bits as one that is 2^32 times as
/// large.
struct Unsigned64 : Integer64 {
  using Wide = hn::RebindToUnsigned<D64>;
  static HWY_INLINE V64 lower(hn::Vec<Wide> v) {
    return hn::BitCast(D64(), hn::Or(v, hn::Set(Wide(), 0x4330000000000000u)));
  }
};
template <>
struct Source<DType::u32> : Unsigned64 {
  static HWY_INLINE V64 vector(const std::uint32_t* p, int) {
    return hn::Sub(lower(hn::PromoteTo(Wide(), hn::LoadU(hn::Rebind<std::uint32_t, D64>(), p))),
                   hn::Set(D64(), 0x1p52));
  }
};
template <>
struct Source<DType::u64> : Unsigned64 {
  static HWY_INLINE V64 vector(const std::uint64_t* p, int) {
    const auto v = hn::LoadU(Wide(), p);
    const auto upper = hn::BitCast(D64(), hn::Or(hn::ShiftRight<32>(v), hn::Set(Wide(), 0x4530000000000000u)));
    return hn::Add(hn::Sub(upper, hn::Set(D64(), 0x1p84 + 0x1p52)), lower(hn::And(v, hn::Set(Wide(), 0xffffffffu))));
  }
};

#endif
}  // namespace HWY_NAMESPACE
}  // namespace retrograd
HWY_AFTER_NAMESPACE();
#endif

#include "core/statistics/sums.h"

#include <cmath>

#include "core/statistics/one_by_one.h"

// Highway includes this file once for each kind of vector unit; what is below HWY_ONCE chooses among them when the
// program runs. Processors of the last ten years have AVX2; what is older takes SSE2, which each has, and the two
// between would cost as much to compile as those.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/statistics/sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/statistics/sources.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR
void Add(DType dtype, const void* data, std::int64_t elements, Sums& sums) {
  numbers::withElement(dtype, [&](auto element) { addOneByOne(element, data, elements, sums); });
}
#else

/// Adds vectors of numbers. `masked`: some may be NaN or infinite; without it those are noticed by the sum of
/// absolutes, which then is neither.
template <class D, bool masked>
struct Adder {
  using V = hn::Vec<D>;
  V least, greatest, smallest;
  V64 sum[2], absolutes[2], squares[2];
  std::size_t nan = 0, bad = 0;

  HWY_INLINE Adder() {  // initializers of members would be compiled without the vector unit
    least = smallest = hn::Set(D(), std::numeric_limits<hn::TFromD<D> >::infinity());
    greatest = hn::Neg(least);
    for (int k = 0; k < 2; ++k) sum[k] = absolutes[k] = squares[k] = hn::Zero(D64());
  }

  HWY_INLINE void addDoubles(int k, V64 v, V64 hashed) {
    sum[k] = hn::Add(sum[k], v);
    absolutes[k] = hn::Add(absolutes[k], hn::Abs(hashed));
    squares[k] = hn::MulAdd(v, v, squares[k]);
  }

  template <class S>
  HWY_INLINE void add(V v) {
    if constexpr (masked) {
      const auto infinity = hn::Set(D(), std::numeric_limits<hn::TFromD<D> >::infinity());
      const auto finite = hn::Lt(hn::Abs(v), infinity);
      bad += hn::Lanes(D()) - hn::CountTrue(D(), finite);
      nan += hn::Lanes(D()) - hn::CountTrue(D(), hn::Eq(v, v));
      least = hn::Min(least, hn::IfThenElse(finite, v, infinity));
      greatest = hn::Max(greatest, hn::IfThenElse(finite, v, hn::Neg(infinity)));
      smallest = hn::Min(smallest, hn::IfThenElse(finite, hn::Abs(v), infinity));
      v = hn::IfThenElseZero(finite, v);
    } else {
      least = hn::Min(least, v);
      greatest = hn::Max(greatest, v);
      smallest = hn::Min(smallest, hn::Abs(v));
    }
    if constexpr (sizeof(hn::TFromD<D>) == 8) {
      addDoubles(0, v, S::hashed(v));
    } else {
      const auto low = hn::PromoteTo(D64(), hn::LowerHalf(Half32(), v)),
                 high = hn::PromoteTo(D64(), hn::UpperHalf(Half32(), v));
      addDoubles(0, low, low);
      addDoubles(1, high, high);
    }
  }

  /// False where something was not finite and nobody looked.
  HWY_INLINE bool finish(Sums& sums) const {
    const double all = hn::GetLane(hn::SumOfLanes(D64(), hn::Add(absolutes[0], absolutes[1])));
    if (!masked && !std::isfinite(all)) return false;
    sums.absolutes += all;
    sums.sum += hn::GetLane(hn::SumOfLanes(D64(), hn::Add(sum[0], sum[1])));
    sums.squares += hn::GetLane(hn::SumOfLanes(D64(), hn::Add(squares[0], squares[1])));
    sums.least = std::min(sums.least, static_cast<double>(hn::GetLane(hn::MinOfLanes(D(), least))));
    sums.greatest = std::max(sums.greatest, static_cast<double>(hn::GetLane(hn::MaxOfLanes(D(), greatest))));
    sums.nan += static_cast<std::int64_t>(nan);
    sums.inf += static_cast<std::int64_t>(bad - nan);
    return true;
  }
};

/// Zeros and subnormal numbers, in a pass of their own because most blocks have none.
template <class S, class Bits>
HWY_NOINLINE void countSmall(const Bits* p, std::size_t count, double normal, Sums& sums) {
  const typename S::D d;
  using Number = hn::TFromD<decltype(d)>;
  const auto zero = hn::Zero(d), least = hn::Set(d, static_cast<Number>(normal));
  std::size_t zeros = 0, small = 0;
  for (std::size_t i = 0; i < count; i += S::step())
    for (int k = 0; k < S::vectors; ++k) {
      const auto v = hn::Abs(S::vector(p + i, k));
      zeros += hn::CountTrue(d, hn::Eq(v, zero));
      small += hn::CountTrue(d, hn::Lt(v, least));
    }
  sums.zeros += static_cast<std::int64_t>(zeros);
  if (normal > 0) sums.subnormal += static_cast<std::int64_t>(small - zeros);
}

/// The same by their bits, for the floats of sixteen.
template <std::uint16_t normal>
HWY_NOINLINE void countSmallBits(const std::uint16_t* p, std::size_t count, Sums& sums) {
  const hn::Repartition<std::uint16_t, D32> d;
  const hn::RebindToSigned<decltype(d)> order;
  std::size_t zeros = 0, small = 0, i = 0;
  for (const auto step = hn::Lanes(d); i + step <= count; i += step) {
    const auto magnitude = hn::BitCast(order, hn::And(hn::LoadU(d, p + i), hn::Set(d, std::uint16_t{0x7fff})));
    zeros += hn::CountTrue(order, hn::Eq(magnitude, hn::Zero(order)));
    small += hn::CountTrue(order, hn::Lt(magnitude, hn::Set(order, std::int16_t{normal})));
  }
  for (; i < count; ++i) {
    zeros += (p[i] & 0x7fff) == 0;
    small += (p[i] & 0x7fff) < normal;
  }
  sums.zeros += static_cast<std::int64_t>(zeros);
  sums.subnormal += static_cast<std::int64_t>(small - zeros);
}

/// And for those of eight, which have no subnormal ones but the least power of two.
template <std::uint8_t mask>
HWY_NOINLINE void countZeroBits(const std::uint8_t* p, std::size_t count, std::int64_t& zeros) {
  const hn::ScalableTag<std::uint8_t> d;
  std::size_t i = 0;
  for (const auto step = hn::Lanes(d); i + step <= count; i += step)
    zeros += static_cast<std::int64_t>(
        hn::CountTrue(d, hn::Eq(hn::And(hn::LoadU(d, p + i), hn::Set(d, mask)), hn::Zero(d))));
  for (; i < count; ++i) zeros += (p[i] & mask) == 0;
}

template <class S, bool masked, class Bits>
HWY_NOINLINE bool addVectors(const Bits* p, std::size_t count, double normal, Sums& sums) {
  Adder<typename S::D, masked> adder;
  for (std::size_t i = 0; i < count; i += S::step())
    for (int k = 0; k < S::vectors; ++k) adder.template add<S>(S::vector(p + i, k));
  if (!adder.finish(sums)) return false;
  if (hn::GetLane(hn::MinOfLanes(typename S::D(), adder.smallest)) <
      std::max(normal, std::numeric_limits<double>::denorm_min())) {
    if constexpr (std::is_same_v<S, Source<DType::f16> >) countSmallBits<0x0400>(p, count, sums);
    else if constexpr (std::is_same_v<S, Source<DType::bf16> >) countSmallBits<0x0080>(p, count, sums);
    else if constexpr (std::is_same_v<S, Source<DType::f8e8m0fnu> >) countZeroBits<0xff>(p, count, sums.subnormal);
    else if constexpr (std::is_same_v<S, Source<DType::f8e4m3fn> > || std::is_same_v<S, Source<DType::f8e5m2> >)
      countZeroBits<0x7f>(p, count, sums.zeros);
    else if constexpr (std::is_same_v<Bits, std::uint8_t>) countZeroBits<0xff>(p, count, sums.zeros);
    else countSmall<S>(p, count, normal, sums);
  }
  return true;
}

template <DType dtype>
HWY_INLINE void addBlocks(const void* data, std::int64_t elements, Sums& sums) {
  using S = Source<dtype>;
  using Element = numbers::Element<dtype>;
  const auto* p = static_cast<const typename Element::Bits*>(data);
  const auto count = static_cast<std::size_t>(elements), step = S::step(), vectors = count - count % step;
  constexpr std::size_t block = 4096;  // stays in the first cache for a second look
  bool careful = false;
  for (std::size_t begin = 0; begin < vectors; begin += block) {
    const auto size = std::min(block, vectors - begin);
    if (careful || !addVectors<S, false>(p + begin, size, Element::smallestNormal, sums)) {
      const auto before = sums.nan + sums.inf;
      addVectors<S, true>(p + begin, size, Element::smallestNormal, sums);
      careful = sums.nan + sums.inf > before;
    }
  }
  addOneByOne(Element(), p + vectors, static_cast<std::int64_t>(count - vectors), sums);
}

/// Bytes as integers: sums of bytes and of products of 16-bit numbers are exact and four times as fast as floats.
/// `flip`: signed ones.
template <DType dtype>
void addBytes(const void* data, std::int64_t elements, Sums& sums) {
  const hn::ScalableTag<std::uint8_t> d8;
  const hn::Repartition<std::int16_t, decltype(d8)> d16;
  const hn::Repartition<std::int32_t, decltype(d8)> d32;
  const hn::Repartition<std::uint64_t, decltype(d8)> d64;
  const auto* p = static_cast<const std::uint8_t*>(data);
  const auto count = static_cast<std::size_t>(elements), step = hn::Lanes(d8), vectors = count - count % step;
  const auto flip = hn::Set(d8, std::uint8_t{0x80}), one = hn::Set(d8, std::uint8_t{1}), none = hn::Zero(d8);
  constexpr bool isSigned = dtype == DType::i8;
  const std::size_t block = 4096 * step;  // 32 bits hold its squares
  for (std::size_t begin = 0; begin < vectors; begin += block) {
    const auto end = std::min(begin + block, vectors);
    auto sum = hn::Zero(d64), absolutes = sum;
    auto squares = hn::Zero(d32), more = squares;
    auto least = hn::Set(d8, std::uint8_t{255}), greatest = none;
    std::size_t zeros = 0;
    for (auto i = begin; i < end; i += step) {
      auto v = hn::LoadU(d8, p + i);
      if (dtype == DType::b8) v = hn::Min(v, one);
      const auto size = isSigned ? hn::Min(v, hn::Sub(none, v)) : v;
      const auto order = isSigned ? hn::Xor(v, flip) : v;  // as unsigned ones, in the same order
      least = hn::Min(least, order);
      greatest = hn::Max(greatest, order);
      sum = hn::Add(sum, hn::SumsOf8(order));
      absolutes = hn::Add(absolutes, hn::SumsOf8(size));
      const auto pairs = hn::BitCast(hn::RebindToUnsigned<decltype(d16)>(), size);
      const auto even = hn::BitCast(
                     d16, hn::And(pairs, hn::Set(hn::RebindToUnsigned<decltype(d16)>(), std::uint16_t{0xff}))),
                 odd = hn::BitCast(d16, hn::ShiftRight<8>(pairs));
      squares = hn::ReorderWidenMulAccumulate(d32, even, even, squares, more);
      squares = hn::ReorderWidenMulAccumulate(d32, odd, odd, squares, more);
      zeros += hn::CountTrue(d8, hn::Eq(v, none));
    }
    const double bias = isSigned ? 128 : 0;
    sums.sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d64, sum))) - bias * static_cast<double>(end - begin);
    sums.absolutes += static_cast<double>(hn::GetLane(hn::SumOfLanes(d64, absolutes)));
    HWY_ALIGN std::int32_t products[hn::MaxLanes(d32)];
    hn::Store(hn::Add(squares, more), d32, products);
    for (std::size_t i = 0; i < hn::Lanes(d32); ++i) sums.squares += products[i];
    HWY_ALIGN std::uint8_t extremes[2][hn::MaxLanes(d8)];
    hn::Store(least, d8, extremes[0]);
    hn::Store(greatest, d8, extremes[1]);
    sums.least = std::min(sums.least, *std::min_element(extremes[0], extremes[0] + hn::Lanes(d8)) - bias);
    sums.greatest = std::max(sums.greatest, *std::max_element(extremes[1], extremes[1] + hn::Lanes(d8)) - bias);
    sums.zeros += static_cast<std::int64_t>(zeros);
  }
  addOneByOne(numbers::Element<dtype>(), p + vectors, static_cast<std::int64_t>(count - vectors), sums);
}

/// What bytes say without becoming numbers: extremes and zeros of floats of eight bits. A byte has a place in the order
/// of numbers: unsigned, least first.
template <DType dtype>
struct TinyOrder {
  static constexpr bool fnuz = dtype == DType::f8e4m3fnuz || dtype == DType::f8e5m2fnuz,
                        exponent = dtype == DType::f8e8m0fnu;
  /// The greatest place of a finite number; that of the least is as far from the other end, but for exponents.
  static constexpr std::uint8_t last = dtype == DType::f8e5m2 ? 0xfb : fnuz ? 0xff : 0xfe;
  using D = hn::ScalableTag<std::uint8_t>;
  hn::Vec<D> least, greatest;
  std::size_t zeros = 0;
  bool minusZero = false;

  HWY_INLINE TinyOrder() {
    least = hn::Set(D(), std::uint8_t{0xff});
    greatest = hn::Zero(D());
  }
  HWY_INLINE void add(hn::Vec<D> v) {
    auto place = v;
    if constexpr (!exponent) {
      const hn::RebindToSigned<D> order;
      place = hn::Xor(
          v, hn::Or(hn::BitCast(D(), hn::BroadcastSignBit(hn::BitCast(order, v))), hn::Set(D(), std::uint8_t{0x80})));
      zeros += hn::CountTrue(D(), hn::Eq(hn::Add(v, v), hn::Zero(D())));
    }
    if constexpr (exponent) zeros += hn::CountTrue(D(), hn::Eq(v, hn::Zero(D())));
    if constexpr (fnuz) minusZero |= !hn::AllFalse(D(), hn::Eq(v, hn::Set(D(), std::uint8_t{0x80})));
    least = hn::Min(least, place);
    greatest = hn::Max(greatest, place);
  }
  /// False where a byte is not finite.
  HWY_INLINE bool finish(Sums& sums) const {
    HWY_ALIGN std::uint8_t all[2][hn::MaxLanes(D())];
    hn::Store(least, D(), all[0]);
    hn::Store(greatest, D(), all[1]);
    const auto low = *std::min_element(all[0], all[0] + hn::Lanes(D())),
               high = *std::max_element(all[1], all[1] + hn::Lanes(D()));
    if (minusZero || high > last || (!exponent && low < 0xff - last)) return false;
    const auto number = [](std::uint8_t place) {
      if (!exponent) place = static_cast<std::uint8_t>(place < 0x80 ? ~place : place ^ 0x80);
      return static_cast<double>(numbers::Element<dtype>::number(place)) + 0.0;  // no minus zero
    };
    sums.least = std::min(sums.least, number(low));
    sums.greatest = std::max(sums.greatest, number(high));
    (exponent ? sums.subnormal : sums.zeros) += static_cast<std::int64_t>(zeros);
    return true;
  }
};

/// Numbers of three bits and less are added in float32, eight at a time and lane, and then as doubles: that rounds
/// seldom and by 2^-24 of a sum of eight.
template <DType dtype>
HWY_NOINLINE bool addTinyFloats(const std::uint8_t* p, std::size_t count, Sums& sums) {
  using Halves = TinyHalves<dtype>;
  const typename TinyOrder<dtype>::D d8;
  TinyOrder<dtype> order;
  V64 totals[3][2];
  for (auto& total : totals) total[0] = total[1] = hn::Zero(D64());
  for (std::size_t i = 0; i < count; i += 2 * hn::Lanes(d8)) {
    auto sum = hn::Zero(D32()), absolutes = sum, squares = sum;
    const auto add = [&](V32 v) HWY_ATTR {
      sum = hn::Add(sum, v);
      absolutes = hn::Add(absolutes, hn::Abs(v));
      squares = hn::MulAdd(v, v, squares);
    };
    const auto addHalves = [&](hn::Vec<typename Halves::Pairs> v) HWY_ATTR {
      add(fromHalves(hn::LowerHalf(Bits16(), v)));
      add(fromHalves(hn::UpperHalf(Bits16(), v)));
    };
    for (int k = 0; k < 2; ++k) {
      const auto bytes = hn::LoadU(d8, p + i + static_cast<std::size_t>(k) * hn::Lanes(d8));
      order.add(bytes);
      const auto pairs = hn::BitCast(typename Halves::Pairs(), bytes);
      addHalves(Halves::even(pairs));
      addHalves(Halves::odd(pairs));
    }
    const V32 sums32[]{sum, absolutes, squares};
    for (int k = 0; k < 3; ++k) {
      totals[k][0] = hn::Add(totals[k][0], hn::PromoteTo(D64(), hn::LowerHalf(Half32(), sums32[k])));
      totals[k][1] = hn::Add(totals[k][1], hn::PromoteTo(D64(), hn::UpperHalf(Half32(), sums32[k])));
    }
  }
  double all[3];
  for (int k = 0; k < 3; ++k) all[k] = hn::GetLane(hn::SumOfLanes(D64(), hn::Add(totals[k][0], totals[k][1])));
  if (!std::isfinite(all[2]) || !order.finish(sums)) return false;
  sums.sum += all[0] * Halves::scale;
  sums.absolutes += all[1] * Halves::scale;
  sums.squares += all[2] * Halves::scale * Halves::scale;
  return true;
}

/// Powers of two are doubles as soon as the exponent is in its place.
HWY_NOINLINE bool addExponents(const std::uint8_t* p, std::size_t count, Sums& sums) {
  const TinyOrder<DType::f8e8m0fnu>::D d8;
  const hn::RebindToUnsigned<D64> d64;
  TinyOrder<DType::f8e8m0fnu> order;
  V64 sum[2], squares[2];
  for (int k = 0; k < 2; ++k) sum[k] = squares[k] = hn::Zero(D64());
  const auto mask = hn::Set(d64, std::uint64_t{0xff} << 52), bias = hn::Set(d64, std::uint64_t{1023 - 127} << 52);
  const auto add = [&](int k, hn::Vec<decltype(d64)> moved) HWY_ATTR {
    const auto v = hn::BitCast(D64(), hn::Add(hn::And(moved, mask), bias));
    sum[k] = hn::Add(sum[k], v);
    squares[k] = hn::MulAdd(v, v, squares[k]);
  };
  for (std::size_t i = 0; i < count; i += hn::Lanes(d8)) {
    const auto bytes = hn::LoadU(d8, p + i);
    order.add(bytes);
    const auto words = hn::BitCast(d64, bytes);
    add(0, hn::ShiftLeft<52>(words));
    add(1, hn::ShiftLeft<44>(words));
    add(0, hn::ShiftLeft<36>(words));
    add(1, hn::ShiftLeft<28>(words));
    add(0, hn::ShiftLeft<20>(words));
    add(1, hn::ShiftLeft<12>(words));
    add(0, hn::ShiftLeft<4>(words));
    add(1, hn::ShiftRight<4>(words));
  }
  if (!order.finish(sums)) return false;
  const double all = hn::GetLane(hn::SumOfLanes(D64(), hn::Add(sum[0], sum[1])));
  sums.sum += all;
  sums.absolutes += all;
  sums.squares += hn::GetLane(hn::SumOfLanes(D64(), hn::Add(squares[0], squares[1])));
  return true;
}

/// Blocks of floats of eight bits; those with a byte that is not finite go the way of all others.
template <DType dtype>
void addTiny(const void* data, std::int64_t elements, Sums& sums) {
  using S = Source<dtype>;
  using Element = numbers::Element<dtype>;
  const auto* p = static_cast<const std::uint8_t*>(data);
  const auto count = static_cast<std::size_t>(elements), step = 2 * hn::Lanes(hn::ScalableTag<std::uint8_t>()),
             vectors = count - count % step;
  const std::size_t block = 64 * step;
  bool careful = false;
  for (std::size_t begin = 0; begin < vectors; begin += block) {
    const auto size = std::min(block, vectors - begin);
    const auto fast = [&] {
      if constexpr (dtype == DType::f8e8m0fnu) return addExponents(p + begin, size, sums);
      else return addTinyFloats<dtype>(p + begin, size, sums);
    };
    if (!careful && fast()) continue;
    const auto before = sums.nan + sums.inf;
    addVectors<S, true>(p + begin, size, Element::smallestNormal, sums);
    careful = sums.nan + sums.inf > before;
  }
  addBlocks<dtype>(p + vectors, static_cast<std::int64_t>(count - vectors), sums);
}

void Add(DType dtype, const void* data, std::int64_t elements, Sums& sums) {
  switch (dtype) {
// NOLINTBEGIN(bugprone-macro-parentheses): a template's name takes none
#define RETROGRAD_CASE(name, function) \
  case DType::name: return function<DType::name>(data, elements, sums);
    // NOLINTEND(bugprone-macro-parentheses)
    RETROGRAD_CASE(f32, addBlocks)
    RETROGRAD_CASE(f64, addBlocks)
    RETROGRAD_CASE(f16, addBlocks)
    RETROGRAD_CASE(bf16, addBlocks)
    RETROGRAD_CASE(i16, addBlocks)
    RETROGRAD_CASE(u16, addBlocks)
    RETROGRAD_CASE(i32, addBlocks)
    RETROGRAD_CASE(i64, addBlocks)
    RETROGRAD_CASE(c64, addBlocks)
    RETROGRAD_CASE(f8e4m3fn, addTiny)
    RETROGRAD_CASE(f8e5m2, addTiny)
    RETROGRAD_CASE(f8e4m3fnuz, addTiny)
    RETROGRAD_CASE(f8e5m2fnuz, addTiny)
    RETROGRAD_CASE(u8, addBytes)
    RETROGRAD_CASE(i8, addBytes)
    RETROGRAD_CASE(b8, addBytes)
    RETROGRAD_CASE(u32, addBlocks)
    RETROGRAD_CASE(u64, addBlocks)
    RETROGRAD_CASE(c32, addBlocks)
    RETROGRAD_CASE(c128, addBlocks)
    RETROGRAD_CASE(f8e8m0fnu, addTiny)
#undef RETROGRAD_CASE
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace retrograd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd {

HWY_EXPORT(Add);

void addSums(DType dtype, const void* data, std::int64_t elements, Sums& sums) {
  sums.elements += elements;
  HWY_DYNAMIC_DISPATCH(Add)(dtype, data, elements, sums);
}

void Sums::merge(const Sums& other) {
  elements += other.elements;
  nan += other.nan;
  inf += other.inf;
  zeros += other.zeros;
  subnormal += other.subnormal;
  sum += other.sum;
  absolutes += other.absolutes;
  squares += other.squares;
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
}

}  // namespace retrograd
#endif

// Statistics in one pass, in every dtype and on every vector unit, against sums of doubles one by one.
#include "core/statistics/tensor_pass.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "core/statistics/element.h"

namespace retrograd::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

void oneByOne(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  for (auto i = count; i-- > 0;) body(i);  // backwards: the order is nobody's business
}

TensorStatistics flat(DType dtype, const void* data, std::int64_t elements) {
  return statisticsOf(Footprint({dtype, data, {elements}, {1}}), oneByOne);
}

/// Two passes in long double.
TensorStatistics expected(DType dtype, const std::vector<double>& numbers) {
  TensorStatistics s;
  s.elements = static_cast<std::int64_t>(numbers.size());
  double normal = 0;
  bool integer = false;
  numbers::withElement(dtype, [&](auto element) {
    normal = element.smallestNormal;
    integer = numbers::isInteger<decltype(element)>;
  });
  std::vector<double> finite;
  for (double x : numbers) {
    s.nan += std::isnan(x);
    s.inf += std::isinf(x);
    if (!std::isfinite(x)) continue;
    finite.push_back(x);
    s.zeros += x == 0;
    s.subnormal += x != 0 && std::abs(x) < normal;
  }
  if (finite.empty()) return s;
  s.min = *std::min_element(finite.begin(), finite.end());
  s.max = *std::max_element(finite.begin(), finite.end());
  long double sum = 0, squares = 0, absolutes = 0, distances = 0;
  for (long double x : finite) {
    sum += x;
    squares += x * x;
    absolutes += integer ? std::abs(static_cast<float>(x)) : std::abs(x);
  }
  const auto mean = sum / static_cast<long double>(finite.size());
  for (long double x : finite) distances += (x - mean) * (x - mean);
  s.mean = static_cast<double>(mean);
  s.norm = static_cast<double>(std::sqrt(squares));
  s.norm1 = static_cast<double>(absolutes);
  if (finite.size() > 1)
    s.standardDeviation = static_cast<double>(std::sqrt(distances / static_cast<long double>(finite.size() - 1)));
  return s;
}

std::vector<double> numbersOf(DType dtype, const Bytes& bytes) {
  std::vector<double> result;
  numbers::withElement(dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(typename Element::Bits)) {
      typename Element::Bits bits;
      std::memcpy(&bits, bytes.data() + i, sizeof bits);
      result.push_back(Element::number(bits));
    }
  });
  return result;
}

/// Within `tolerance`; the mean relative to what its terms add up to.
void expectSame(const TensorStatistics& a, const TensorStatistics& b, double tolerance) {
  EXPECT_EQ(a.elements, b.elements);
  EXPECT_EQ(a.nan, b.nan);
  EXPECT_EQ(a.inf, b.inf);
  EXPECT_EQ(a.zeros, b.zeros);
  EXPECT_EQ(a.subnormal, b.subnormal);
  const auto near = [&](double x, double y, const char* what) {
    EXPECT_TRUE(x == y || std::abs(x - y) <= tolerance * std::abs(y)) << what << ": " << x << " and " << y;
  };
  near(a.min, b.min, "min");
  near(a.max, b.max, "max");
  near(a.norm, b.norm, "norm");
  near(a.norm1, b.norm1, "norm1");
  near(a.standardDeviation, b.standardDeviation, "standard deviation");
  EXPECT_NEAR(a.mean, b.mean, tolerance * (std::abs(b.mean) + b.standardDeviation * 1e-3));
}

/// Random bits, with exponents that keep doubles' squares in range.
Bytes randomBytes(DType dtype, std::size_t elements, std::mt19937& random) {
  Bytes bytes(elements * static_cast<std::size_t>(itemSize(dtype)));
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  const bool wide = dtype == DType::f64 || isComplex(dtype);
  const auto part = static_cast<std::size_t>(itemSize(dtype)) / (isComplex(dtype) ? 2 : 1);
  for (std::size_t k = part - 1; wide && k < bytes.size(); k += part)
    bytes[k] = static_cast<std::uint8_t>(bytes[k] & 0x80u) | 0x3cu;
  return bytes;
}

/// Absolute values of complex numbers, and sums of floats of eight bits, go through float32.
bool rounds(DType dtype) { return isComplex(dtype) || (isFloating(dtype) && itemSize(dtype) == 1); }

/// For each vector unit that this processor has.
template <class Body>
void onEveryUnit(Body&& body) {
  const auto all = hwy::SupportedTargets();
  for (auto rest = all; rest != 0; rest &= rest - 1) {
    const auto target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

TEST(TensorPass, S2EveryDTypeOnEveryVectorUnit) {
  onEveryUnit([] {
    std::mt19937 random(5);
    for (int d = 0; d < dtypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      SCOPED_TRACE(std::string(shortName(dtype)));
      for (const std::size_t size : {0u, 1u, 2u, 15u, 63u, 64u, 257u, 4096u, 4099u, 20001u}) {
        const auto bytes = randomBytes(dtype, size, random);
        expectSame(flat(dtype, bytes.data(), static_cast<std::int64_t>(size)), expected(dtype, numbersOf(dtype, bytes)),
                   rounds(dtype) ? 1e-6 : 1e-9);
      }
    }
  });
}

TEST(TensorPass, S2FloatsOfEightBits) {
  onEveryUnit([] {
    std::mt19937 random(7);
    for (const auto dtype : {DType::f8e4m3fn, DType::f8e5m2, DType::f8e4m3fnuz, DType::f8e5m2fnuz, DType::f8e8m0fnu}) {
      SCOPED_TRACE(std::string(shortName(dtype)));
      Bytes all(256), finite;
      for (int i = 0; i < 256; ++i) all[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
      const auto numbers = numbersOf(dtype, all);
      for (std::size_t i = 0; i < 256; ++i)
        if (std::isfinite(numbers[i])) finite.push_back(static_cast<std::uint8_t>(i));
      const auto check = [&](const Bytes& bytes) {
        expectSame(flat(dtype, bytes.data(), static_cast<std::int64_t>(bytes.size())),
                   expected(dtype, numbersOf(dtype, bytes)), 1e-6);
      };
      Bytes bytes(9001);
      for (auto& b : bytes) b = finite[random() % finite.size()];
      check(bytes);
      for (std::size_t i = 0; i < 256; ++i) {  // one of each among others, a NaN and an infinity too, and it alone
        auto some = bytes;
        some[i * 35] = static_cast<std::uint8_t>(i);
        check(some);
        check(Bytes(600, static_cast<std::uint8_t>(i)));
      }
      for (auto& b : bytes)
        b = finite[finite.size() / 3 + random() % 2];  // two neighbours: what is left of the squares is small
      check(bytes);
    }
  });
  Bytes far(100000, 0x7e);  // 448, and now and then the least number there is
  for (std::size_t i = 0; i < far.size(); i += 9973) far[i] = 1;
  expectSame(flat(DType::f8e4m3fn, far.data(), 100000), expected(DType::f8e4m3fn, numbersOf(DType::f8e4m3fn, far)),
             1e-6);
}

TEST(TensorPass, S2PairsOfHalves) {
  std::mt19937 random(9);
  for (const std::uint16_t exponents : {0x0000, 0x0c00, 0x3c00, 0x7800}) {  // subnormal, small, around one, the largest
    std::vector<std::uint16_t> halves(2 * 30011);
    for (auto& h : halves) h = static_cast<std::uint16_t>((random() & 0x83ffu) | exponents);
    Bytes bytes(halves.size() * 2);
    std::memcpy(bytes.data(), halves.data(), bytes.size());
    onEveryUnit([&] {
      expectSame(flat(DType::c32, bytes.data(), 30011), expected(DType::c32, numbersOf(DType::c32, bytes)), 1e-6);
    });
  }
}

TEST(TensorPass, S2SquaresOfLargeAndSmallNumbersKeepTheirRange) {
  const std::vector<float> large(5000, 3e38f), small(5000, 1e-40f);
  expectSame(flat(DType::f32, large.data(), 5000), expected(DType::f32, {large.begin(), large.end()}), 1e-9);
  expectSame(flat(DType::f32, small.data(), 5000), expected(DType::f32, {small.begin(), small.end()}), 1e-9);
  for (const double scale : {1e300, 1e-300, 1e154, 1e-160}) {
    std::vector<double> numbers;
    for (int i = 0; i < 5000; ++i) numbers.push_back(scale * (1 + i % 7));
    expectSame(flat(DType::f64, numbers.data(), 5000), expected(DType::f64, numbers), 1e-9);
  }
  const std::vector<double> pair{3e200, 4e200};
  EXPECT_NEAR(flat(DType::c128, pair.data(), 1).norm / 5e200, 1, 1e-12);
}

TEST(TensorPass, S2NothingCancelsFarFromZero) {
  std::vector<float> numbers;
  for (int i = 0; i < 300000; ++i) numbers.push_back(1e6f + static_cast<float>(i % 3));
  expectSame(flat(DType::f32, numbers.data(), 300000), expected(DType::f32, {numbers.begin(), numbers.end()}), 1e-9);
  const std::vector<float> same(70000, 0.1f);
  const auto s = flat(DType::f32, same.data(), 70000);
  EXPECT_EQ(s.standardDeviation, 0);
  EXPECT_EQ(s.mean, static_cast<double>(0.1f));
}

TEST(TensorPass, S2InfinitiesAndNaNAreLeftOutBlockByBlock) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(50000);
  for (auto& x : numbers) x = normal(random);
  for (std::size_t i = 0; i < numbers.size(); i += 977) numbers[i] = i % 3 == 0 ? nan : i % 3 == 1 ? inf : -inf;
  const auto s = flat(DType::f32, numbers.data(), 50000);
  expectSame(s, expected(DType::f32, {numbers.begin(), numbers.end()}), 1e-9);
}

TEST(TensorPass, L1IntegersPassThroughFloat32) {
  const std::vector<std::int64_t> numbers{(1 << 24) + 1, -((1 << 24) + 1)};  // not representable: one less each
  EXPECT_EQ(flat(DType::i64, numbers.data(), 2).norm1, 2.0 * (1 << 24));
  EXPECT_EQ(flat(DType::i64, numbers.data(), 2).max, (1 << 24) + 1);
  std::vector<std::int32_t> many(1000, (1 << 24) + 1);
  onEveryUnit([&] { EXPECT_EQ(flat(DType::i32, many.data(), 1000).norm1, 1000.0 * (1 << 24)); });
}

TEST(TensorPass, S2StridedTensorsCountTheirOwnElements) {
  std::vector<float> memory(64 * 300 * 5);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i % 1009) - 300;
  const auto at = [&](const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < sizes[0]; ++i)
      for (std::int64_t j = 0; j < sizes[1]; ++j)
        for (std::int64_t k = 0; k < sizes[2]; ++k)
          numbers.push_back(memory[static_cast<std::size_t>(i * strides[0] + j * strides[1] + k * strides[2])]);
    return expected(DType::f32, numbers);
  };
  const std::vector<std::vector<std::int64_t>> shapes[]{
      {{64, 300, 5}, {1500, 5, 1}},                                 // as it lies
      {{5, 300, 64}, {1, 5, 1500}},                                 // all transposed
      {{64, 300, 3}, {1500, 5, 1}},                                 // short runs
      {{64, 100, 5}, {1500, 15, 1}}, {{30, 300, 5}, {3000, 5, 1}},  // long runs
      {{64, 300, 2}, {1500, 5, 2}},                                 // every other
      {{64, 300, 4}, {1500, 5, 0}},                                 // each four times
      {{2, 3, 4}, {0, 0, 0}},        {{20, 300, 5}, {5, 5, 1}},     // overlapping
  };
  for (const auto& shape : shapes)
    expectSame(statisticsOf(Footprint({DType::f32, memory.data(), shape[0], shape[1]}), oneByOne),
               at(shape[0], shape[1]), 1e-9);
  EXPECT_EQ(Footprint({DType::f32, memory.data(), {64, 300, 5}, {1500, 5, 1}}),
            Footprint({DType::f32, memory.data(), {5, 300, 64}, {1, 5, 1500}}));
  EXPECT_NE(Footprint({DType::f32, memory.data(), {4, 5}, {5, 1}}),
            Footprint({DType::f32, memory.data(), {4, 5}, {0, 1}}));
  EXPECT_EQ(statisticsOf(Footprint({DType::f32, memory.data(), {}, {}}), oneByOne).elements, 1);
  EXPECT_EQ(statisticsOf(Footprint({DType::f32, nullptr, {3, 0, 2}, {0, 2, 1}}), oneByOne).elements, 0);
}

}  // namespace
}  // namespace retrograd::test

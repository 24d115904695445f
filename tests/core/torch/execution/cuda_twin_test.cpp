// The code of the statistics kernels, run on the CPU: every dtype, every layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/torch/execution/cuda/twin.h"

namespace retrograd::cuda {
namespace {

template <class T>
Tensor flat(const std::vector<T>& elements, DType dtype, std::size_t itemsPerElement = 1) {
  Tensor tensor{};
  tensor.data = elements.data();
  tensor.elements = static_cast<std::int64_t>(elements.size() / itemsPerElement);
  tensor.dtype = static_cast<std::int32_t>(dtype);
  tensor.contiguous = 1;
  return tensor;
}

Summary summaryOf(const Tensor& tensor) {
  Summary summary;
  EXPECT_TRUE(twin::summarise(tensor, summary));
  return summary;
}

/// The textbook's two passes over the finite ones of `numbers`. `rounding`: what adding up chunks in float32 leaves.
void expectMoments(const Summary& summary, const std::vector<double>& numbers, double rounding = 1e-6) {
  std::vector<double> finite;
  std::int64_t nan = 0, inf = 0;
  for (double x : numbers) {
    nan += std::isnan(x);
    inf += std::isinf(x);
    if (std::isfinite(x)) finite.push_back(x);
  }
  long double mean = 0, squares = 0, norm = 0;
  for (double x : finite) mean += x;
  mean /= static_cast<long double>(std::max<std::size_t>(finite.size(), 1));
  for (double x : finite) squares += (x - mean) * (x - mean), norm += static_cast<long double>(x) * x;
  EXPECT_EQ(summary.finite, static_cast<std::int64_t>(finite.size()));
  EXPECT_EQ(summary.nan, nan);
  EXPECT_EQ(summary.infinite, inf);
  if (finite.empty()) return;
  EXPECT_EQ(summary.least, *std::min_element(finite.begin(), finite.end()));
  EXPECT_EQ(summary.greatest, *std::max_element(finite.begin(), finite.end()));
  const auto scale = static_cast<double>(std::sqrt(norm / static_cast<long double>(finite.size())));
  const auto deviation = static_cast<double>(std::sqrt(squares / static_cast<long double>(finite.size())));
  EXPECT_NEAR(summary.mean, static_cast<double>(mean), 1e-13 * scale + rounding * deviation);
  EXPECT_NEAR(summary.squares, static_cast<double>(squares),
              std::max(rounding, 1e-11) * static_cast<double>(squares) + 1e-300);
  EXPECT_NEAR(summary.norm, static_cast<double>(norm), std::max(rounding, 1e-12) * static_cast<double>(norm));
}

std::vector<float> normals(std::size_t count, float mean = 0) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal(mean);
  std::vector<float> numbers(count);
  for (auto& x : numbers) x = normal(generator);
  return numbers;
}

TEST(CudaTwin, momentsAreThoseOfTwoPasses) {
  for (const std::size_t count : {1u, 31u, 32u, 257u, 5000u, 1'100'000u})
    for (const float mean : {0.f, 1e6f}) {
      const auto numbers = normals(count, mean);
      expectMoments(summaryOf(flat(numbers, DType::f32)), {numbers.begin(), numbers.end()});
    }
}

TEST(CudaTwin, whatIsNotFiniteIsCountedAndLeftOut) {
  auto numbers = normals(3000);
  numbers[0] = std::numeric_limits<float>::quiet_NaN();
  numbers[17] = std::numeric_limits<float>::infinity();
  numbers[1700] = -std::numeric_limits<float>::infinity();
  expectMoments(summaryOf(flat(numbers, DType::f32)), {numbers.begin(), numbers.end()});
  const std::vector<float> nothing(100, std::numeric_limits<float>::quiet_NaN());
  const auto summary = summaryOf(flat(nothing, DType::f32));
  EXPECT_EQ(summary.finite, 0);
  EXPECT_EQ(summary.least, 0);
  EXPECT_EQ(summary.nan, 100);
}

TEST(CudaTwin, magnitudesGoByPowerOfTwo) {
  const std::vector<float> numbers{0.f, -0.f, 1.f, -1.5f, 2.f, 0.75f, 1e-40f, 1e-30f, 1e30f};
  std::int64_t counts[magnitudeCells] = {};
  ASSERT_TRUE(twin::magnitudes(flat(numbers, DType::f32), counts));
  const auto octave = [&](int exponent) { return counts[firstOctaveCell + exponent - leastExponent]; };
  EXPECT_EQ(counts[zeroCell], 2);
  EXPECT_EQ(counts[subnormalCell], 1);
  EXPECT_EQ(octave(0), 2);
  EXPECT_EQ(octave(1), 1);
  EXPECT_EQ(octave(-1), 1);
  EXPECT_EQ(octave(leastExponent), 1);
  EXPECT_EQ(octave(leastExponent + octaves - 1), 1);
}

/// Layouts that start off a vector's border, and those that end in the middle of one.
TEST(CudaTwin, headAndTailOfVectorsCount) {
  const auto numbers = normals(4099);
  for (std::size_t begin = 0; begin < 6; ++begin)
    for (std::size_t end = numbers.size() - 5; end <= numbers.size(); ++end) {
      const std::vector<double> part(numbers.begin() + static_cast<std::ptrdiff_t>(begin),
                                     numbers.begin() + static_cast<std::ptrdiff_t>(end));
      auto tensor = flat(numbers, DType::f32);
      tensor.data = numbers.data() + begin;
      tensor.elements = static_cast<std::int64_t>(part.size());
      expectMoments(summaryOf(tensor), part);
    }
}

TEST(CudaTwin, stridedElementsAreFound) {
  const auto numbers = normals(40 * 30 * 5);
  auto tensor = flat(numbers, DType::f32);
  tensor.contiguous = 0;
  tensor.dims = 3;
  const std::int64_t sizes[]{3, 20, 10}, strides[]{1, 150, 10};
  std::copy_n(sizes, 3, tensor.sizes);
  std::copy_n(strides, 3, tensor.strides);
  tensor.elements = 600;
  std::vector<double> expected;
  for (std::int64_t i = 0; i < sizes[0]; ++i)
    for (std::int64_t j = 0; j < sizes[1]; ++j)
      for (std::int64_t k = 0; k < sizes[2]; ++k)
        expected.push_back(numbers[static_cast<std::size_t>(i * strides[0] + j * strides[1] + k * strides[2])]);
  expectMoments(summaryOf(tensor), expected);
}

template <class T>
void expectIntegers(DType dtype) {
  std::vector<T> elements;
  std::vector<double> numbers;
  for (int i = 0; i < 500; ++i) elements.push_back(static_cast<T>(i * 7 - 90));
  elements.push_back(std::numeric_limits<T>::max());
  elements.push_back(std::numeric_limits<T>::min());
  for (T x : elements) numbers.push_back(static_cast<double>(x));
  expectMoments(summaryOf(flat(elements, dtype)), numbers);
}

TEST(CudaTwin, integers) {
  expectIntegers<std::int8_t>(DType::i8);
  expectIntegers<std::int16_t>(DType::i16);
  expectIntegers<std::int32_t>(DType::i32);
  expectIntegers<std::int64_t>(DType::i64);
  expectIntegers<std::uint8_t>(DType::u8);
  expectIntegers<std::uint16_t>(DType::u16);
  expectIntegers<std::uint32_t>(DType::u32);
  expectIntegers<std::uint64_t>(DType::u64);
  const std::vector<std::uint8_t> truths{1, 0, 1, 1};
  expectMoments(summaryOf(flat(truths, DType::b8)), {1, 0, 1, 1});
}

/// All bit patterns of a small float, against the definition of its format.
void expectSmallFloats(DType dtype, int exponentBits, int mantissaBits, int bias, Specials specials) {
  const int bits = 1 + exponentBits + mantissaBits, count = 1 << bits;
  std::vector<double> numbers;
  std::int64_t subnormal = 0;
  for (int i = 0; i < count; ++i) {
    const double sign = i >> (bits - 1) ? -1 : 1;
    const int exponent = i >> mantissaBits & ((1 << exponentBits) - 1), mantissa = i & ((1 << mantissaBits) - 1),
              greatest = (1 << exponentBits) - 1;
    const double fraction = static_cast<double>(mantissa) / (1 << mantissaBits);
    double x = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    if (specials == Specials::ieee && exponent == greatest) x = mantissa ? NAN : INFINITY;
    if (specials == Specials::fn && exponent == greatest && mantissa == (1 << mantissaBits) - 1) x = NAN;
    if (specials == Specials::fnuz && i == count / 2) x = NAN;
    numbers.push_back(sign * x);
    if (dtype == DType::f16) subnormal += exponent == 0 && mantissa != 0;
  }
  const auto check = [&](const Summary& summary) {
    expectMoments(summary, numbers);
    EXPECT_EQ(summary.subnormal, subnormal);
    EXPECT_EQ(summary.zeros, specials == Specials::fnuz ? 1 : 2);
  };
  if (bits == 8) {
    std::vector<std::uint8_t> elements;
    for (int i = 0; i < count; ++i) elements.push_back(static_cast<std::uint8_t>(i));
    check(summaryOf(flat(elements, dtype)));
  } else {
    std::vector<std::uint16_t> elements;
    for (int i = 0; i < count; ++i) elements.push_back(static_cast<std::uint16_t>(i));
    check(summaryOf(flat(elements, dtype)));
  }
}

TEST(CudaTwin, smallFloatsInAllTheirPatterns) {
  expectSmallFloats(DType::f16, 5, 10, 15, Specials::ieee);
  expectSmallFloats(DType::f8e4m3fn, 4, 3, 7, Specials::fn);
  expectSmallFloats(DType::f8e5m2, 5, 2, 15, Specials::ieee);
  expectSmallFloats(DType::f8e4m3fnuz, 4, 3, 8, Specials::fnuz);
  expectSmallFloats(DType::f8e5m2fnuz, 5, 2, 16, Specials::fnuz);
  std::vector<std::uint8_t> exponents;
  std::vector<double> powers;
  for (int i = 0; i < 256; ++i)
    exponents.push_back(static_cast<std::uint8_t>(i)), powers.push_back(i == 255 ? NAN : std::ldexp(1.0, i - 127));
  expectMoments(summaryOf(flat(exponents, DType::f8e8m0fnu)), powers);
}

TEST(CudaTwin, bfloatAndDouble) {
  std::vector<std::uint16_t> brains;
  std::vector<double> numbers;
  for (const float x : normals(999)) {
    brains.push_back(static_cast<std::uint16_t>(reinterpretBits<std::uint32_t>(x) >> 16));
    numbers.push_back(reinterpretBits<float>(static_cast<std::uint32_t>(brains.back()) << 16));
  }
  expectMoments(summaryOf(flat(brains, DType::bf16)), numbers);
  const std::vector<double> doubles{1e300, -1e-320, 0, 3};
  const auto summary = summaryOf(flat(doubles, DType::f64));
  EXPECT_EQ(summary.greatest, 1e300);
  EXPECT_EQ(summary.subnormal, 1);
}

TEST(CudaTwin, complexNumbersByAbsoluteValue) {
  const std::vector<float> parts{3, 4, 0, -2, INFINITY, NAN, NAN, 1};
  const auto summary = summaryOf(flat(parts, DType::c64, 2));
  expectMoments(summary, {5, 2, INFINITY, NAN});
  const std::vector<double> wide{3e200, 4e200};
  EXPECT_DOUBLE_EQ(summaryOf(flat(wide, DType::c128, 2)).greatest, 5e200);
  const std::vector<std::uint16_t> halves{0x4200, 0x4400};  // 3 + 4i
  EXPECT_EQ(summaryOf(flat(halves, DType::c32, 2)).greatest, 5);
}

TEST(CudaTwin, cellsOfAHistogram) {
  const std::vector<float> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, NAN, INFINITY};
  std::vector<std::int64_t> counts(5, 0);
  ASSERT_TRUE(twin::histogram(flat(numbers, DType::f32), linearCells(0, 10, 5), counts.data()));
  EXPECT_EQ(counts, (std::vector<std::int64_t>{2, 2, 2, 2, 3}));
  const std::vector<float> equal(4, 3.f);
  std::vector<std::int64_t> one(3, 0);
  ASSERT_TRUE(twin::histogram(flat(equal, DType::f32), linearCells(3, 3, 3), one.data()));
  EXPECT_EQ(one, (std::vector<std::int64_t>{4, 0, 0}));
}

/// Ranges whose length, or its reciprocal, is not a double.
TEST(CudaTwin, CellsOfTheWidestAndTheNarrowestRange) {
  constexpr double greatest = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const std::vector<double> wide{-greatest, greatest, 0, greatest / 2};
  std::vector<std::int64_t> counts(4, 0);
  ASSERT_TRUE(twin::histogram(flat(wide, DType::f64), linearCells(-greatest, greatest, 4), counts.data()));
  EXPECT_EQ(counts, (std::vector<std::int64_t>{1, 0, 1, 2}));
  const std::vector<double> narrow{0, least, 2 * least, 3 * least, 4 * least};
  std::vector<std::int64_t> few(4, 0);
  ASSERT_TRUE(twin::histogram(flat(narrow, DType::f64), linearCells(0, 4 * least, 4), few.data()));
  EXPECT_EQ(few, (std::vector<std::int64_t>{1, 1, 1, 2}));
  for (const double a : {-greatest, -1e300, -1.0, 0.0, least, 1.0})
    for (const double b : {a, 0.5, 1e-300, 1e300, greatest})
      for (const double x : {a, b, a / 2 + b / 2, -greatest, greatest}) {
        const int cell = linearCell(x, linearCells(std::min(a, b), std::max(a, b), 7));
        EXPECT_TRUE(cell >= 0 && cell < 7) << x << " from " << a << " to " << b;
      }
}

/// Chunks whose squares leave the range of a float, hold something that is not finite, or are all equal.
TEST(CudaTwin, ChunksThatFloatsCannotAddAreAddedExactly) {
  for (const float scale : {1e-40f, 1e-25f, 1e-14f, 1.f, 1e15f, 1e30f, 3e38f}) {
    SCOPED_TRACE(scale);
    std::vector<float> numbers = normals(20'000);
    for (auto& x : numbers) x = std::tanh(x) * scale;
    expectMoments(summaryOf(flat(numbers, DType::f32)), {numbers.begin(), numbers.end()});
    for (std::size_t i = 0; i < numbers.size(); i += 777) numbers[i] = i % 2 ? NAN : -INFINITY;
    expectMoments(summaryOf(flat(numbers, DType::f32)), {numbers.begin(), numbers.end()});
  }
  const std::vector<float> equal(50'000, 0.1f);
  const auto summary = summaryOf(flat(equal, DType::f32));
  EXPECT_EQ(summary.mean, static_cast<double>(0.1f));
  EXPECT_EQ(summary.squares, 0);
}

TEST(CudaTwin, AnOutlierFirstInItsChunkHidesNothing) {
  auto numbers = normals(40'000, 1);
  for (std::size_t i = 0; i < numbers.size(); i += 64) numbers[i] = 1e4f;
  expectMoments(summaryOf(flat(numbers, DType::f32)), {numbers.begin(), numbers.end()}, 1e-5);
}

TEST(CudaTwin, ZerosAndSubnormalNumbersOfWholeChunksCount) {
  std::vector<float> numbers(30'000, 1.f);
  std::int64_t zeros = 0, subnormal = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i % 3 == 0) numbers[i] = 0, ++zeros;
    if (i % 7 == 1) zeros -= numbers[i] == 0, numbers[i] = 1e-40f, ++subnormal;
  }
  const auto summary = summaryOf(flat(numbers, DType::f32));
  EXPECT_EQ(summary.zeros, zeros);
  EXPECT_EQ(summary.subnormal, subnormal);
}

/// Random bits of every dtype: sums by double precision of the same elements, whatever their layout.
TEST(CudaTwin, RandomBitsOfEveryDtypeAndLayout) {
  std::mt19937 random(5);
  for (int i = 0; i < dtypeCount; ++i)
    for (const std::int64_t shift : {0, 1, 3})
      for (const int most : {1, 3, mostBlocks}) {
        const auto dtype = static_cast<DType>(i);
        SCOPED_TRACE(std::string(shortName(dtype)) + " from element " + std::to_string(shift));
        const std::int64_t elements = 20'000;
        std::vector<std::uint64_t> words(static_cast<std::size_t>((elements + shift + 1) * itemSize(dtype) / 8 + 1));
        for (auto& word : words) word = static_cast<std::uint64_t>(random()) << 32 | random();
        // doubles of all sizes have no norm: exponents near 1
        if (dtype == DType::f64 || dtype == DType::c128)
          for (auto& word : words) word = (word & 0x800fffffffffffffu) | 0x3fe0000000000000u;
        auto tensor = flat(words, dtype);
        tensor.data = reinterpret_cast<const char*>(words.data()) + shift * itemSize(dtype);
        tensor.elements = elements;
        std::vector<double> numbers;
        withElement(dtype, [&](auto element) {
          using Element = decltype(element);
          forEachOf<Element>(tensor, layoutOf<Element>(tensor, 1), 0, 1,
                             [&](typename Element::Number x) { numbers.push_back(static_cast<double>(x)); });
        });
        ASSERT_EQ(numbers.size(), static_cast<std::size_t>(elements));
        Summary summary;
        ASSERT_TRUE(twin::summarise(tensor, summary, most));
        expectMoments(summary, numbers, 2e-6);
        auto strided = tensor;
        strided.contiguous = 0;
        strided.dims = 2;
        strided.sizes[0] = 100, strided.sizes[1] = elements / 100;
        strided.strides[0] = 1, strided.strides[1] = 100;
        Summary other;
        ASSERT_TRUE(twin::summarise(strided, other, most));
        expectMoments(other, numbers, 2e-6);
        EXPECT_EQ(other.zeros, summary.zeros);
        EXPECT_EQ(other.subnormal, summary.subnormal);
      }
}

TEST(CudaTwin, anUnknownDtypeIsRefused) {
  const std::vector<float> numbers{1};
  auto tensor = flat(numbers, DType::f32);
  tensor.dtype = 77;
  Summary summary;
  EXPECT_FALSE(twin::summarise(tensor, summary));
}

}  // namespace
}  // namespace retrograd::cuda

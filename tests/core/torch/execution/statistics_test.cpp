// Statistics of a value, against the textbook's two passes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/torch/analysis/analyse.h"
#include "core/torch/execution/cuda/summaries.h"
#include "core/torch/execution/cuda/twin.h"
#include "core/torch/session/session.h"
#include "tests/support/float_tensor.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

TensorStatistics statisticsOf(const std::vector<float>& numbers) {
  const auto size = static_cast<std::int64_t>(numbers.size());
  ModelBuilder m;
  const auto x = m.input("x", {size});
  m.output(m.op("aten.neg.default", {x}));
  DerivationRequest options;
  options.inputs["x"] = floatTensor({size}, numbers);
  return Session(m.analyse(options)).statistics(x);
}

TensorStatistics twoPasses(const std::vector<float>& numbers) {
  TensorStatistics s;
  s.elements = static_cast<std::int64_t>(numbers.size());
  std::vector<double> finite;
  for (float f : numbers) {
    s.nan += std::isnan(f);
    s.inf += std::isinf(f);
    if (!std::isfinite(f)) continue;
    finite.push_back(f);
    s.zeros += f == 0;
    s.subnormal += f != 0 && std::abs(f) < std::numeric_limits<float>::min();
  }
  if (finite.empty()) return s;
  s.min = *std::min_element(finite.begin(), finite.end());
  s.max = *std::max_element(finite.begin(), finite.end());
  double squares = 0;
  for (double x : finite) s.mean += x, s.norm += x * x;
  s.mean /= static_cast<double>(finite.size());
  s.norm = std::sqrt(s.norm);
  for (double x : finite) squares += (x - s.mean) * (x - s.mean);
  s.standardDeviation = finite.size() > 1 ? std::sqrt(squares / static_cast<double>(finite.size() - 1)) : 0;
  return s;
}

void expectSame(const std::vector<float>& numbers) {
  const auto a = statisticsOf(numbers), b = twoPasses(numbers);
  EXPECT_EQ(a.elements, b.elements);
  EXPECT_EQ(a.nan, b.nan);
  EXPECT_EQ(a.inf, b.inf);
  EXPECT_EQ(a.zeros, b.zeros);
  EXPECT_EQ(a.subnormal, b.subnormal);
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.max, b.max);
  EXPECT_NEAR(a.mean, b.mean, 1e-9 * (std::abs(b.mean) + b.standardDeviation));
  EXPECT_NEAR(a.standardDeviation, b.standardDeviation, 1e-9 * b.standardDeviation);
  EXPECT_NEAR(a.norm, b.norm, 1e-9 * b.norm);
}

TEST(Statistics, EqualTwoPassesForAllSizes) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(3, 2);
  for (const std::size_t size : {1u, 2u, 7u, 8u, 9u, 4095u, 4096u, 4097u, 20000u}) {
    std::vector<float> numbers(size);
    for (auto& x : numbers) x = normal(random);
    expectSame(numbers);
  }
}

TEST(Statistics, NothingCancelsFarFromZero) {
  std::vector<float> numbers(10000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1e6f + static_cast<float>(i % 3);
  expectSame(numbers);
}

TEST(Statistics, CountsWhatIsNotFiniteZerosAndSubnormals) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  expectSame({nan, 1, -inf, 0, 2, 1e-40f, -0.0f, inf, nan, 5});
  expectSame({0, 0, 0});
  expectSame({nan, inf});
  std::vector<float> late(9000, nan);  // whole blocks without a finite element
  late[8999] = -2;
  expectSame(late);
}

TensorData tensorOf(DType dtype, const std::vector<std::uint8_t>& bytes) {
  auto kept = std::make_shared<std::vector<std::uint8_t>>(bytes);
  TensorData data;
  data.meta.dtype = dtype;
  data.meta.sizes = {static_cast<std::int64_t>(bytes.size()) / itemSize(dtype)};
  data.meta.strides = {1};
  data.data = reinterpret_cast<const std::byte*>(kept->data());
  data.bytes = kept->size();
  data.owner = kept;
  return data;
}

/// A session over one input that holds these bytes.
std::pair<std::unique_ptr<Session>, ValueId> sessionOver(DType dtype, const std::vector<std::uint8_t>& bytes) {
  ModelBuilder m;
  const auto x = m.input("x", {static_cast<std::int64_t>(bytes.size()) / itemSize(dtype)}, dtype);
  m.output(m.op("aten.clone.default", {x}));
  DerivationRequest options;
  options.inputs["x"] = tensorOf(dtype, bytes);
  return {std::make_unique<Session>(m.analyse(options)), x};
}

// The kernels' code and the CPU's own find the same in every dtype.
TEST(Statistics, equalTheTwinOfTheGpusKernels) {
  std::mt19937 random(3);
  for (int i = 0; i < dtypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    SCOPED_TRACE(std::string(shortName(dtype)));
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(itemSize(dtype)) * 3001);
    // Doubles of all sizes have no norm, and complex numbers with one infinite part are nobody's friends: exponents
    // near 1 there.
    const bool wide = dtype == DType::f64 || isComplex(dtype);
    const auto part = static_cast<std::size_t>(itemSize(dtype)) / (isComplex(dtype) ? 2 : 1);
    for (std::size_t k = 0; k < bytes.size(); ++k)
      bytes[k] = wide && k % part == part - 1 ? 0x3c : static_cast<std::uint8_t>(random());
    if (dtype == DType::b8)
      for (auto& b : bytes) b &= 1;
    const auto [session, x] = sessionOver(dtype, bytes);
    cuda::Tensor tensor{bytes.data(), 3001, {}, {}, 0, i, 1};
    cuda::Summary summary;
    ASSERT_TRUE(cuda::twin::summarise(tensor, summary));
    const auto a = session->statistics(x), b = cuda::toStatistics(summary);
    EXPECT_EQ(a.elements, b.elements);
    EXPECT_EQ(a.nan, b.nan);
    EXPECT_EQ(a.inf, b.inf);
    EXPECT_EQ(a.zeros, b.zeros);
    EXPECT_EQ(a.subnormal, b.subnormal);
    const auto near = [](double x, double y, double tolerance, const char* what) {
      EXPECT_TRUE(x == y || std::abs(x - y) <= tolerance * std::max(std::abs(x), std::abs(y)))
          << what << ": " << x << " and " << y;
    };
    const double rounding = isComplex(dtype) ? 1e-6 : 0;  // absolute values are rounded on the way
    near(a.min, b.min, rounding, "min");
    near(a.max, b.max, rounding, "max");
    near(a.mean, b.mean, 1e-6, "mean");
    near(a.standardDeviation, b.standardDeviation, 1e-6, "standard deviation");
    near(a.norm, b.norm, 1e-6, "norm");
    if (!isComplex(dtype)) {
      std::vector<std::int64_t> magnitudes(cuda::magnitudeCells, 0);
      ASSERT_TRUE(cuda::twin::magnitudes(tensor, magnitudes.data()));
      EXPECT_EQ(session->magnitudes(x), magnitudes);
    }
    if (isComplex(dtype) || a.min == a.max) continue;
    std::vector<std::int64_t> counts(20);
    ASSERT_TRUE(cuda::twin::histogram(tensor, cuda::linearCells(b.min, b.max, 20), counts.data()));
    EXPECT_EQ(session->histogram(x, 20), counts);
  }
}

// The range of these is infinite: a cell computed from it would be NaN.
TEST(Statistics, AHistogramOfTheWholeRangeOfDoubles) {
  constexpr double greatest = std::numeric_limits<double>::max();
  const double numbers[]{-greatest, greatest, 0, 1, greatest / 2};
  std::vector<std::uint8_t> bytes(sizeof numbers);
  std::memcpy(bytes.data(), numbers, sizeof numbers);
  const auto [session, x] = sessionOver(DType::f64, bytes);
  EXPECT_EQ(session->histogram(x, 4), (std::vector<std::int64_t>{1, 0, 2, 2}));
}

TEST(Statistics, aLazilyNegatedTensorIsNegative) {
  ModelBuilder m;
  const auto x = m.input("x", {2}, DType::c64);
  const auto y =
      m.op("aten.select.int",
           {m.op("aten.view_as_real.default", {m.op("aten.resolve_conj.default", {m.op("aten._conj.default", {x})})}),
            1, 1});
  const auto lazy = m.op("aten._neg_view.default", {y});
  m.output(lazy);
  DerivationRequest options;
  std::vector<std::uint8_t> bytes(16);
  const float parts[]{1, 2, 3, 4};
  std::memcpy(bytes.data(), parts, sizeof parts);
  options.inputs["x"] = tensorOf(DType::c64, bytes);
  Session session(m.analyse(options));
  session.runTo(session.forwardSize());
  EXPECT_EQ(session.statistics(lazy).min, 2);  // the imaginary parts of conj(x) are -2 and -4
  EXPECT_EQ(session.statistics(lazy).max, 4);
}

}  // namespace
}  // namespace retrograd::test

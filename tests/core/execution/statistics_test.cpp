// Statistics of a value, against the textbook's two passes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/debug/session.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

TensorStatistics statisticsOf(const std::vector<float>& numbers) {
  const auto size = static_cast<std::int64_t>(numbers.size());
  ModelBuilder m;
  const auto x = m.input("x", {size});
  m.output(m.op("aten.neg.default", {x}));
  AnalysisOptions options;
  auto kept = std::make_shared<std::vector<float>>(numbers);
  TensorData data;
  data.meta.sizes = {size};
  data.meta.strides = {1};
  data.data = reinterpret_cast<const std::byte*>(kept->data());
  data.bytes = kept->size() * sizeof(float);
  data.owner = kept;
  options.inputs["x"] = data;
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

}  // namespace
}  // namespace retrograd::test

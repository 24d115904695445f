#include "core/torch/judging/compare.h"
#include "tests/support/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace retrograd {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

template <class T>
TensorData tensor(DType dtype, std::vector<std::int64_t> sizes, const std::vector<T>& elements) {
  auto memory = std::make_shared<std::vector<T>>(elements);
  TensorData t;
  t.meta.dtype = dtype;
  t.meta.strides = contiguousStrides(sizes);
  t.meta.sizes = std::move(sizes);
  t.data = reinterpret_cast<const std::byte*>(memory->data());
  t.bytes = memory->size() * sizeof(T);
  t.owner = memory;
  return t;
}
TensorData doubles(const std::vector<double>& elements) {
  return tensor(DType::f64, {static_cast<std::int64_t>(elements.size())}, elements);
}

// A small tensor is not hidden by a large one.
TEST(Compare, DifferencesAreRelativeToTheTensorsOwnLargest) {
  test::Comparison c;
  c.add("large", doubles({100}), doubles({100.001}));
  c.add("small", doubles({1e-3}), doubles({2e-3}));
  EXPECT_DOUBLE_EQ(c.error(), 0.5);
  EXPECT_EQ(c.worst(), "small");
  EXPECT_EQ(c.count(), 2u);
  const auto found = difference(doubles({1e-3, 3}), doubles({2e-3, -4}));
  EXPECT_EQ(found.deviation, 7);
  EXPECT_EQ(found.scale, 4);
}

// What is not finite is counted.
TEST(Compare, NaNAndInfinityWhereNoneIsExpectedAreCounted) {
  const auto found = difference(doubles({nan, inf, 1, nan, 2}), doubles({1, 1, 1, nan, inf}));
  EXPECT_EQ(found.failure,
            "1 element is NaN where it is not expected, 1 element is infinite where it is not expected, 1 element is "
            "finite where NaN or infinity is expected");
  EXPECT_TRUE(std::isinf(found.deviation));
  const auto count = countNonFinite(doubles({nan, inf, -inf, 0}));
  EXPECT_EQ(count.nan, 1u);
  EXPECT_EQ(count.infinite, 2u);
}

// Nothing is computed in floats of eight bits, so that there is no distance between two.
TEST(Compare, FloatsOfEightBitsAreEqualOrNot) {
  for (const auto dtype : {DType::f8e4m3fn, DType::f8e5m2, DType::f8e4m3fnuz, DType::f8e5m2fnuz, DType::f8e8m0fnu}) {
    const auto a = tensor<std::uint8_t>(dtype, {3}, {200, 100, 0}), b = tensor<std::uint8_t>(dtype, {3}, {200, 101, 0});
    EXPECT_TRUE(difference(a, a).failure.empty());
    EXPECT_EQ(difference(a, a).deviation, 0);
    EXPECT_NE(difference(a, b).failure.find("1 of 3 elements have other bits"), std::string::npos)
        << difference(a, b).failure;
    EXPECT_TRUE(std::isinf(difference(a, b).deviation));
  }
}

TEST(Compare, WholeNumbersBeyondADoublesPrecisionDiffer) {
  const auto large = std::int64_t{1} << 60;
  EXPECT_GT(
      difference(tensor<std::int64_t>(DType::i64, {1}, {large}), tensor<std::int64_t>(DType::i64, {1}, {large + 1}))
          .deviation,
      0);
}

TEST(Compare, nanEqualsNanAndInfinityTheSameInfinity) {
  test::Comparison same;
  same.add("x", doubles({nan, inf, -inf, 1}), doubles({nan, inf, -inf, 1}));
  EXPECT_EQ(same.error(), 0);
  for (const auto& actual : {std::vector{nan, 1.0}, std::vector{-inf, 1.0}, std::vector{3.0, 1.0}}) {
    test::Comparison c;
    c.add("x", doubles(actual), doubles({inf, 1}));
    EXPECT_TRUE(std::isinf(c.error()));
  }
}

TEST(Compare, shapeAndTypeMustAgree) {
  test::Comparison shape, type, any;
  shape.add("x", doubles({1, 2}), doubles({1}));
  EXPECT_EQ(shape.failure(), "x: is f64[2], expected f64[1]");
  const auto single = tensor<float>(DType::f32, {1}, {1});
  type.add("x", single, doubles({1}));
  EXPECT_TRUE(std::isinf(type.error()));
  any.add("x", single, doubles({1}), true);
  EXPECT_EQ(any.error(), 0);
}

TEST(Compare, complexEqualsItsViewAsReal) {
  test::Comparison c;
  auto complex = tensor<double>(DType::c128, {2}, {1, 2, 3, 4});
  c.add("x", complex, tensor<double>(DType::f64, {2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(c.error(), 0);
  complex.meta.conjugate = true;
  EXPECT_EQ(asDoubles(complex), (std::vector<double>{1, -2, 3, -4}));
}

TEST(Compare, smallTypesAreRead) {
  EXPECT_EQ(asDoubles(tensor<std::uint16_t>(DType::f16, {4}, {0x3c00, 0xc000, 0x0001, 0x7c00})),
            (std::vector{1.0, -2.0, std::ldexp(1, -24), inf}));
  EXPECT_EQ(asDoubles(tensor<std::uint16_t>(DType::bf16, {2}, {0x3f80, 0xc000})), (std::vector{1.0, -2.0}));
  EXPECT_EQ(asDoubles(tensor<std::int8_t>(DType::i8, {1}, {-3})), std::vector{-3.0});
}

TEST(Compare, stridesAndOffsetAreFollowed) {
  auto t = tensor<double>(DType::f64, {2, 2}, {0, 1, 2, 3, 4});
  t.meta.strides = {1, 2};
  t.meta.offset = 1;
  EXPECT_EQ(asDoubles(t), (std::vector<double>{1, 3, 2, 4}));
  EXPECT_TRUE(identical(t, tensor<double>(DType::f64, {2, 2}, {1, 3, 2, 4})));
  EXPECT_FALSE(identical(t, tensor<double>(DType::f64, {2, 2}, {1, 3, 2, 5})));
}

TEST(Compare, emptyTensorsAreEqualAndZero) {
  test::Comparison c;
  c.add("x", doubles({}), doubles({}));
  EXPECT_EQ(c.error(), 0);
  EXPECT_TRUE(isZero(doubles({})));
  EXPECT_FALSE(isZero(doubles({0, nan})));
}

TEST(Compare, firstFailureStays) {
  test::Comparison c;
  c.fail("a", "missing");
  c.fail("b", "missing");
  EXPECT_EQ(c.failure(), "a: missing");
  EXPECT_EQ(c.worst(), "a");
}

}  // namespace
}  // namespace retrograd

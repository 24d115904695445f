#include "core/stepping/bad_places.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/float_tensor.h"

namespace retrograd::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(BadPlaces, AreTheFirstOnesInOrder) {
  auto tensor = floatTensor({2, 3}, {0, nan, infinity, -infinity, 1, nan});
  auto places = badPlaces(tensor);
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[1].index, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(describe(places, 4), "nan at [0, 1], [1, 2]; inf at [0, 2]; -inf at [1, 0]");
  EXPECT_EQ(describe(badPlaces(tensor, 1), 4), "nan at [0, 1], ...");
  // As it lies: the same memory transposed.
  tensor.meta.sizes = {3, 2};
  tensor.meta.strides = {1, 3};
  EXPECT_EQ(badPlaces(tensor, 1)[0].index, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(describe(badPlaces(floatTensor({}, {nan})), 1), "nan at []");
}

TEST(BadPlaces, WholeNumbersHaveNone) {
  auto tensor = floatTensor({2}, {nan, nan});
  tensor.meta.dtype = DType::i32;
  EXPECT_TRUE(badPlaces(tensor).empty());
}

}  // namespace
}  // namespace retrograd::test

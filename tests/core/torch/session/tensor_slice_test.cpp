#include "core/stepping/tensor_slice.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/base/error.h"

namespace retrograd::test {
namespace {

/// 0, 1, 2, ... in this shape.
TensorData counting(std::vector<std::int64_t> sizes) {
  TensorData tensor;
  tensor.meta.dtype = DType::i32;
  tensor.meta.sizes = std::move(sizes);
  tensor.meta.strides = contiguousStrides(tensor.meta.sizes);
  const auto numbers = std::make_shared<std::vector<std::int32_t>>(static_cast<std::size_t>(tensor.meta.elements()));
  std::iota(numbers->begin(), numbers->end(), 0);
  tensor.data = reinterpret_cast<const std::byte*>(numbers->data());
  tensor.bytes = numbers->size() * 4;
  tensor.owner = numbers;
  return tensor;
}

std::vector<std::int32_t> elements(const TensorData& tensor) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(tensor.meta.elements()));
  if (!all.empty()) std::memcpy(all.data(), tensor.data, tensor.bytes);
  return all;
}

using Sizes = std::vector<std::int64_t>;
using Elements = std::vector<std::int32_t>;

TEST(TensorSlice, IndicesTakeDimensionsAwayAndSlicesKeepThem) {
  const auto t = counting({2, 3, 4});
  EXPECT_EQ(sliced(t, "1").meta.sizes, (Sizes{3, 4}));
  EXPECT_EQ(elements(sliced(t, "1, 2")), (Elements{20, 21, 22, 23}));
  EXPECT_EQ(elements(sliced(t, "0, :, 1")), (Elements{1, 5, 9}));
  EXPECT_EQ(elements(sliced(t, "-1,-1,-1")), (Elements{23}));
  EXPECT_EQ(sliced(t, "-1,-1,-1").meta.sizes, Sizes{});
  EXPECT_EQ(elements(sliced(t, "1, 1:, ::2")), (Elements{16, 18, 20, 22}));
  EXPECT_EQ(elements(sliced(t, "..., 3")), (Elements{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(elements(sliced(t, "1, ..., -2:")), (Elements{14, 15, 18, 19, 22, 23}));
  EXPECT_EQ(elements(sliced(t, "")), elements(t));
}

TEST(TensorSlice, BoundsAreClippedAsInPython) {
  const auto t = counting({5});
  EXPECT_EQ(elements(sliced(t, "3:100")), (Elements{3, 4}));
  EXPECT_EQ(elements(sliced(t, "-100:2")), (Elements{0, 1}));
  EXPECT_TRUE(elements(sliced(t, "4:2")).empty());
  EXPECT_EQ(elements(sliced(t, "::9223372036854775807")), Elements{0});
  EXPECT_EQ(sliced(counting({0, 3}), ":, 1").meta.sizes, Sizes{0});
}

TEST(TensorSlice, FollowsStridesAndOffset) {
  auto t = counting({3, 4});
  t.meta.sizes = {2, 3};  // t[1:, :3] transposed to [2, 3] with strides 1, 4 from element 1
  t.meta.strides = {1, 4};
  t.meta.offset = 1;
  EXPECT_EQ(elements(sliced(t, "1")), (Elements{2, 6, 10}));
  EXPECT_EQ(elements(sliced(t, ":, 0")), (Elements{1, 2}));
}

TEST(TensorSlice, RefusesWhatDoesNotFit) {
  const auto t = counting({2, 3});
  for (const char* slice :
       {"2", "-3", "0, 0, 0", "x", "1:2:3:4", "::0", "::-1", ",", "1,,2", "..., ...", "0.5", "99999999999999999999"})
    EXPECT_THROW(sliced(t, slice), Error) << slice;
}

TEST(TensorSlice, IsTakenOffAName) {
  EXPECT_EQ(splitSlice("t12[0, :4]"), (std::pair<std::string, std::string>("t12", "0, :4")));
  EXPECT_EQ(splitSlice(" grad W [ 1 ]"), (std::pair<std::string, std::string>("grad W", "1")));
  EXPECT_EQ(splitSlice("layers.0.weight"), (std::pair<std::string, std::string>("layers.0.weight", "")));
  EXPECT_THROW(splitSlice("t12[0"), Error);
}

}  // namespace
}  // namespace retrograd::test

#include "core/base/overlap.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

using Ranges = std::vector<ByteRanges::Range>;

/// Of int8, so that a byte is an element.
Ranges bytesOf(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides, std::int64_t offset = 0,
               DType dtype = DType::i8) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.sizes = std::move(sizes);
  meta.strides = std::move(strides);
  meta.offset = offset;
  return ByteRanges::of(meta).ranges();
}

TEST(ByteRanges, AreThoseOfATensorsElements) {
  EXPECT_EQ(bytesOf({2, 3}, {3, 1}), (Ranges{{0, 6}}));
  EXPECT_EQ(bytesOf({3, 2}, {1, 3}), (Ranges{{0, 6}}));  // transposed
  EXPECT_EQ(bytesOf({2, 3}, {3, 1}, 1, DType::f32), (Ranges{{4, 28}}));
  EXPECT_EQ(bytesOf({3, 2}, {4, 1}, 1), (Ranges{{1, 3}, {5, 7}, {9, 11}}));  // columns
  EXPECT_EQ(bytesOf({5, 2}, {0, 1}), (Ranges{{0, 2}}));                      // expanded
  EXPECT_EQ(bytesOf({3, 2}, {1, 1}), (Ranges{{0, 4}}));                      // windows that overlap
  EXPECT_EQ(bytesOf({3, 3}, {3, 2}), (Ranges{{0, 1}, {2, 9}, {10, 11}}));    // out of order
  EXPECT_EQ(bytesOf({}, {}, 7), (Ranges{{7, 8}}));
  EXPECT_EQ(bytesOf({0, 3}, {3, 1}), Ranges());
  EXPECT_EQ(bytesOf({2'000'000}, {2}), (Ranges{{0, 3'999'999}}));  // too many pieces
}

TEST(ByteRanges, AreAddedAndRemoved) {
  ByteRanges some(0, 10);
  some.remove({2, 4});
  some.remove({9, 12});
  EXPECT_EQ(some.ranges(), (Ranges{{0, 2}, {4, 9}}));
  EXPECT_TRUE(some.overlaps({8, 20}));
  EXPECT_FALSE(some.overlaps({2, 4}));
  EXPECT_FALSE(some.overlaps({}));
  ByteRanges holes(1, 2);
  holes.add({5, 6});
  some.remove(holes);
  EXPECT_EQ(some.ranges(), (Ranges{{0, 1}, {4, 5}, {6, 9}}));
  some.add({1, 6});
  EXPECT_EQ(some.ranges(), (Ranges{{0, 9}}));
  some.remove({0, 9});
  EXPECT_TRUE(some.empty());
}

}  // namespace
}  // namespace retrograd

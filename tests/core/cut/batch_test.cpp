// A batch cut into microbatches.
#include "core/cut/batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using test::errorOf;

/// Elements 0, 1, 2, ... in order.
TensorData counted(std::vector<std::int64_t> sizes) {
  TensorMeta meta;
  meta.dtype = DType::f32;
  meta.sizes = std::move(sizes);
  meta.strides = contiguousStrides(meta.sizes);
  auto memory = std::make_shared<std::vector<float>>(static_cast<std::size_t>(meta.elements()));
  std::iota(memory->begin(), memory->end(), 0.0f);
  return {meta, reinterpret_cast<const std::byte*>(memory->data()), memory->size() * sizeof(float), memory};
}

float first(const TensorData& tensor) {
  float value = 0;
  std::memcpy(&value, tensor.data + static_cast<std::size_t>(tensor.meta.offset) * sizeof value, sizeof value);
  return value;
}

// Holds P63: dimension 0, and what does not come out even goes to the first ones, as torch.tensor_split has it.
TEST(Batch, P63_IsCutAlongItsFirstDimension) {
  const auto cut = cutBatch({{"x", counted({7, 4})}}, 3);
  ASSERT_EQ(cut.microbatches.size(), 3u);
  const std::int64_t rows[] = {3, 2, 2};
  const float begins[] = {0, 12, 20};
  for (std::size_t m = 0; m < 3; ++m) {
    const auto& part = cut.microbatches[m].at("x");
    EXPECT_EQ(part.meta.sizes, (std::vector<std::int64_t>{rows[m], 4})) << m;
    EXPECT_EQ(first(part), begins[m]) << m;
  }
  EXPECT_TRUE(cut.fewerBecause.empty());
}

// Holds P63: another dimension by name, counted from either end; what is replicated goes to each, and so does what has
// no dimension.
TEST(Batch, P63_DimensionsAreGivenByName) {
  const TensorMap batch{
      {"x", counted({4, 6})}, {"y", counted({6, 4})}, {"mask", counted({3, 3})}, {"scale", counted({})}};
  const auto cut = cutBatch(batch, 2, {{"x", -1}, {"y", 0}, {"mask", std::nullopt}});
  ASSERT_EQ(cut.microbatches.size(), 2u);
  const auto& second = cut.microbatches[1];
  EXPECT_EQ(second.at("x").meta.sizes, (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(first(second.at("x")), 3);
  EXPECT_EQ(second.at("x").meta.strides, (std::vector<std::int64_t>{6, 1}));
  EXPECT_EQ(first(second.at("y")), 12);
  EXPECT_EQ(second.at("mask").meta.sizes, (std::vector<std::int64_t>{3, 3}));
  EXPECT_TRUE(second.at("scale").meta.sizes.empty());
}

// Holds P63: there are min(sizes, requested) of them.
TEST(Batch, P63_TheLeastSizeSaysHowManyThereAre) {
  const auto cut = cutBatch({{"x", counted({8, 2})}, {"y", counted({2, 2})}}, 4);
  EXPECT_EQ(cut.microbatches.size(), 2u);
  EXPECT_EQ(cut.microbatches[0].at("x").meta.sizes[0], 4);
  EXPECT_EQ(cut.fewerBecause, "y has 2 along dimension 0");
  EXPECT_EQ(cutBatch({{"x", counted({8, 2})}, {"y", counted({2, 2})}}, 4, {{"y", std::nullopt}}).microbatches.size(),
            4u);
}

TEST(Batch, P63_WhatCannotBeCutSaysWhy) {
  const TensorMap batch{{"x", counted({4, 2})}};
  EXPECT_NE(errorOf([&] { cutBatch(batch, 2, {{"q", 0}}); }).find("q: the batch has no such tensor; it has x"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { cutBatch(batch, 2, {{"x", 2}}); }).find("x: it has no dimension 2, its shape is [4, 2]"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { cutBatch(batch, 2, {{"x", std::nullopt}}); }).find("none of the batch's tensors (x) is cut"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { cutBatch({{"x", counted({0, 2})}}, 2); }).find("nothing along dimension 0"),
            std::string::npos);
}

}  // namespace
}  // namespace retrograd

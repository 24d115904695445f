#include "core/formats/checkpoint/strided_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace retrograd {
namespace {

TensorData numbered(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  TensorData tensor;
  tensor.meta.sizes = std::move(sizes);
  tensor.meta.strides = std::move(strides);
  auto storage = std::make_shared<std::vector<float>>(static_cast<std::size_t>(tensor.meta.storageBytes() / 4));
  std::iota(storage->begin(), storage->end(), 0.0F);
  tensor.data = reinterpret_cast<const std::byte*>(storage->data());
  tensor.bytes = storage->size() * 4;
  tensor.owner = std::move(storage);
  return tensor;
}

float at(const TensorData& tensor, std::int64_t i, std::int64_t j) {
  float x = 0;
  std::memcpy(&x, tensor.data + 4 * (tensor.meta.offset + i * tensor.meta.strides[0] + j * tensor.meta.strides[1]), 4);
  return x;
}

TEST(StridedCopy, laysATransposedTensorOutAsWanted) {
  const auto tensor = numbered({3, 2}, {1, 3});
  auto wanted = tensor.meta;
  wanted.strides = {2, 1};
  const auto copy = laidOutLike(tensor, wanted);
  EXPECT_EQ(copy.meta.strides, wanted.strides);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j) EXPECT_EQ(at(copy, i, j), at(tensor, i, j));
  EXPECT_EQ(laidOutLike(tensor, tensor.meta).data, tensor.data);  // as it lies
}

TEST(StridedCopy, movesWhatIsNotAligned) {
  auto tensor = numbered({2, 2}, {2, 1});
  EXPECT_EQ(aligned(tensor).data, tensor.data);
  tensor.data += 1;
  tensor.bytes -= 4;
  const auto moved = aligned(tensor);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(moved.data) % 4, 0u);
  EXPECT_EQ(std::memcmp(moved.data, tensor.data, tensor.bytes), 0);
}

}  // namespace
}  // namespace retrograd

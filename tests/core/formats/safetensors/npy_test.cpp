#include "core/formats/safetensors/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"

namespace retrograd::test {
namespace {

TensorData tensor(DType dtype, std::vector<std::int64_t> sizes, const void* data) {
  TensorData t;
  t.meta.dtype = dtype;
  t.meta.sizes = std::move(sizes);
  t.meta.strides = contiguousStrides(t.meta.sizes);
  t.data = static_cast<const std::byte*>(data);
  t.bytes = static_cast<std::size_t>(t.meta.bytes());
  return t;
}

std::string written(const TensorData& t) {
  const auto path = testing::TempDir() + "value.npy";
  writeNpy(path, t);
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

/// The dictionary of a file's header; the data begin at a multiple of 64 bytes right after it.
std::string headerOf(const std::string& file) {
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(file[8])) |
                      static_cast<std::size_t>(static_cast<unsigned char>(file[9])) << 8;
  EXPECT_EQ((10 + length) % 64, 0u);
  EXPECT_EQ(file[10 + length - 1], '\n');
  auto header = file.substr(10, length);
  return header.substr(0, header.find('}') + 1);
}

TEST(Npy, HoldsShapeTypeAndBytes) {
  const float numbers[6] = {1, 2, 3, 4, 5, -6};
  const auto file = written(tensor(DType::f32, {2, 3}, numbers));
  EXPECT_EQ(headerOf(file), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  ASSERT_EQ(file.size() % 64, 24u);
  EXPECT_EQ(std::memcmp(file.data() + file.size() - 24, numbers, 24), 0);
}

TEST(Npy, ShapesOfOneAndNoDimensionAreTuples) {
  const std::int64_t numbers[3] = {7, 8, 9};
  EXPECT_EQ(headerOf(written(tensor(DType::i64, {3}, numbers))),
            "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_EQ(headerOf(written(tensor(DType::i64, {}, numbers))),
            "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
  EXPECT_EQ(headerOf(written(tensor(DType::b8, {0, 4}, numbers))),
            "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 4), }");
}

TEST(Npy, BeginsAtTheOffset) {
  const double numbers[4] = {0, 1, 2, 3};
  auto t = tensor(DType::f64, {4}, numbers);
  t.meta.sizes = {2};
  t.meta.offset = 2;
  const auto file = written(t);
  EXPECT_EQ(std::memcmp(file.data() + file.size() - 16, numbers + 2, 16), 0);
}

TEST(Npy, RefusesWhatNumPyCannotHold) {
  const float numbers[6] = {};
  const auto path = testing::TempDir() + "refused.npy";
  EXPECT_THROW(writeNpy(path, tensor(DType::bf16, {2}, numbers)), Error);
  auto transposed = tensor(DType::f32, {2, 3}, numbers);
  transposed.meta.strides = {1, 2};
  EXPECT_THROW(writeNpy(path, transposed), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THROW(writeNpy("/no/such/folder/value.npy", tensor(DType::f32, {2}, numbers)), Error);
}

}  // namespace
}  // namespace retrograd::test

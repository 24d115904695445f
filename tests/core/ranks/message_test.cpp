#include "core/ranks/message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/base/error.h"

namespace retrograd {
namespace {

TensorData tensor(std::vector<float> elements, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides = {},
                  std::int64_t offset = 0) {
  auto memory = std::make_shared<std::vector<float>>(std::move(elements));
  TensorData data;
  data.meta.strides = strides.empty() ? contiguousStrides(sizes) : std::move(strides);
  data.meta.sizes = std::move(sizes);
  data.meta.offset = offset;
  data.data = reinterpret_cast<const std::byte*>(memory->data());
  data.bytes = memory->size() * sizeof(float);
  data.owner = memory;
  return data;
}

std::vector<float> floats(const TensorData& data) {
  std::vector<float> result(static_cast<std::size_t>(data.meta.elements()));
  if (!result.empty()) std::memcpy(result.data(), data.data, result.size() * sizeof(float));
  return result;
}

TensorMap throughTheWire(const TensorMap& tensors) {
  return decodeMessage(std::make_shared<std::vector<std::byte>>(encodeMessage({tensors, {}}))).tensors;
}

TEST(Message, tensorsArriveDenseUnderTheirNames) {
  TensorData numbers = tensor({1, 2}, {1});
  numbers.meta.dtype = DType::i64;
  const auto arrived = throughTheWire({{"x", tensor({1, 2, 3, 4, 5, 6}, {2, 3})},
                                       {"transposed", tensor({1, 2, 3, 4, 5, 6}, {3, 2}, {1, 3})},
                                       {"part", tensor({1, 2, 3, 4, 5, 6}, {2}, {2}, 1)},
                                       {"one", tensor({7}, {})},
                                       {"none", tensor({}, {0, 5})},
                                       {"repeated", tensor({8}, {2, 2}, {0, 0})},
                                       {"numbers", numbers}});
  ASSERT_EQ(arrived.size(), 7u);
  EXPECT_EQ(floats(arrived.at("x")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floats(arrived.at("transposed")), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(arrived.at("transposed").meta.strides, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(floats(arrived.at("part")), (std::vector<float>{2, 4}));
  EXPECT_EQ(arrived.at("part").meta.offset, 0);
  EXPECT_EQ(floats(arrived.at("one")), (std::vector<float>{7}));
  EXPECT_EQ(arrived.at("none").meta.sizes, (std::vector<std::int64_t>{0, 5}));
  EXPECT_EQ(floats(arrived.at("repeated")), (std::vector<float>{8, 8, 8, 8}));
  EXPECT_EQ(arrived.at("numbers").meta.dtype, DType::i64);
  EXPECT_TRUE(throughTheWire({}).empty());
}

TEST(Message, whatIsNotPlainIsNotSent) {
  auto lazy = tensor({1}, {1});
  lazy.meta.negative = true;
  EXPECT_THROW(encodeMessage({{{"x", lazy}}, {}}), Error);
  EXPECT_THROW(encodeMessage({{{"x", tensor({1}, {2})}}, {}}), Error);  // reaches beyond its storage
  auto onGpu = tensor({1}, {1});
  onGpu.memory = Device{Device::Type::cuda, 0};
  EXPECT_THROW(encodeMessage({{{"x", onGpu}}, {}}), Error);
}

TEST(Message, announcesWhatGoesAnotherWay) {
  TensorMeta meta;
  meta.dtype = DType::bf16;
  meta.sizes = {3, 0, 2};
  meta.strides = {1, 3, 3};
  const auto arrived = decodeMessage(std::make_shared<std::vector<std::byte>>(
      encodeMessage({{{"x", tensor({1, 2}, {2})}}, {{"far", meta}, {"one", TensorMeta()}}})));
  EXPECT_EQ(floats(arrived.tensors.at("x")), (std::vector<float>{1, 2}));
  ASSERT_EQ(arrived.announced.size(), 2u);
  EXPECT_EQ(arrived.announced.at("far").dtype, DType::bf16);
  EXPECT_EQ(arrived.announced.at("far").sizes, (std::vector<std::int64_t>{3, 0, 2}));
  EXPECT_EQ(arrived.announced.at("far").strides, contiguousStrides({3, 0, 2}));
  EXPECT_THROW(decodeMessage(
                   std::make_shared<std::vector<std::byte>>(encodeMessage({{{"x", tensor({1}, {1})}}, {{"x", meta}}}))),
               Error);
}

TEST(Message, damagedBytesAreRefusedOrRead) {
  const auto good =
      encodeMessage({{{"x", tensor({1, 2, 3, 4}, {2, 2})}, {"y", tensor({5}, {1})}}, {{"z", TensorMeta()}}});
  const auto refused = [](std::vector<std::byte> bytes) {
    try {
      decodeMessage(std::make_shared<std::vector<std::byte>>(std::move(bytes)));
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::badInput);
      return true;
    }
  };
  EXPECT_FALSE(refused(good));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_TRUE(refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)})) << length;
  auto longer = good;
  longer.push_back({});
  EXPECT_TRUE(refused(longer));
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto changed = good;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<std::byte>(random());
    refused(changed);  // nothing but an Error(badInput), or tensors within the message
  }
}

}  // namespace
}  // namespace retrograd

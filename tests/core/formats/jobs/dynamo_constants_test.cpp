#include "core/formats/jobs/dynamo_constants.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/formats/fx/fx_reader.h"

namespace retrograd::jobs {
namespace {

fx::Graph graphOf(const std::string& body) {
  return fx::readGraph(
      "class G(torch.nn.Module):\n    def forward(self, x: \"f32[3, 4]\"):\n" + body + "        return (x,)\n", "test");
}

std::string lineComment(int line) {
  return "        # File: /job/train.py:" + std::to_string(line) + " in f, code: y\n";
}

std::string constant(int number, const std::string& type) {
  const auto name = "_tensor_constant" + std::to_string(number);
  return "        " + name + ": \"" + type + "\" = self." + name + "\n";
}

template <class Element>
std::vector<Element> elements(const TensorData& tensor) {
  std::vector<Element> found(tensor.bytes / sizeof(Element));
  std::memcpy(found.data(), tensor.data, tensor.bytes);
  return found;
}

TEST(DynamoConstants, J15_AreTheNumbersThatTheLineMakesTensorsOf) {
  const auto dynamo = graphOf(lineComment(4) + "        i: \"i64[2]\" = torch.tensor([0, 2])\n" +
                              "        k: \"f32[1, 2]\" = torch.tensor([[1.5, -2.0]], dtype = torch.float32)\n" +
                              lineComment(5) + "        z: \"f64[]\" = torch.as_tensor(0.5)\n" +
                              "        g: \"f32[3, 3]\" = x[(slice(None, None, None), [2, 0, 1])]\n");
  const auto aten = graphOf(lineComment(4) + constant(0, "i64[2][1]cpu") + constant(1, "f32[1, 2][2, 1]cpu") +
                            lineComment(5) + constant(2, "f64[][]cpu") + constant(3, "i64[3][1]cpu"));
  const auto found = constantsOfDynamo(aten, dynamo);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(elements<std::int64_t>(found.at("_tensor_constant0")), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(elements<float>(found.at("_tensor_constant1")), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_EQ(found.at("_tensor_constant1").meta.sizes, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(elements<double>(found.at("_tensor_constant2")), std::vector<double>{0.5});
  EXPECT_EQ(elements<std::int64_t>(found.at("_tensor_constant3")), (std::vector<std::int64_t>{2, 0, 1}));
}

// One of two equal shapes was not used: which one is not said, so that neither is taken for it.
TEST(DynamoConstants, J15_WhatIsNotSureIsNotTaken) {
  const auto two = [](const std::string& second) {
    return graphOf(lineComment(4) + "        a: \"i64[2]\" = torch.tensor([0, 2])\n" +
                   "        b: \"i64[2]\" = torch.tensor([" + second + "])\n");
  };
  const auto aten = graphOf(lineComment(4) + constant(0, "i64[2][1]cpu"));
  EXPECT_TRUE(constantsOfDynamo(aten, two("1, 3")).empty());
  EXPECT_EQ(constantsOfDynamo(aten, two("0, 2")).size(), 1U);
  EXPECT_TRUE(
      constantsOfDynamo(aten, graphOf(lineComment(9) + "        a: \"i64[2]\" = torch.tensor([0, 2])\n")).empty());
  EXPECT_TRUE(
      constantsOfDynamo(aten, graphOf(lineComment(4) + "        a: \"f32[2]\" = torch.tensor([0.5, 2.0])\n")).empty());
}

TEST(DynamoConstants, J15_ArgumentsOfOtherFunctionsAreNone) {
  const auto aten = graphOf(lineComment(4) + constant(0, "i64[2][1]cpu"));
  EXPECT_TRUE(constantsOfDynamo(aten, graphOf(lineComment(4) + "        a: \"f32[2, 6]\" = torch.reshape(x, [2, 6])\n"))
                  .empty());
}

}  // namespace
}  // namespace retrograd::jobs

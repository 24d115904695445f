#include "core/questions/compare_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace retrograd {
namespace {

constexpr double tolerance = 1e-5;

DebugModeTensor tensor(std::int64_t id, double norm, const std::string& type = "f32[4]") {
  return {type, id, true, norm};
}

DebugModeCall call(const std::string& op, std::vector<DebugModeTensor> inputs, std::vector<DebugModeTensor> outputs) {
  DebugModeCall result;
  result.op = op;
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  return result;
}

/// gelu, view, mm; `factor`: what a mul behind the gelu multiplies by, where there is one.
DebugModeRun run(std::optional<double> factor = {}, bool withInputs = true, bool withIds = true) {
  DebugModeRun result;
  auto& calls = result.calls;
  calls.push_back(call("aten::gelu", {tensor(0, 10)}, {tensor(1, 5)}));
  const double seen = 5 * factor.value_or(1);
  if (factor) calls.push_back(call("aten::mul.Tensor", {tensor(1, 5)}, {tensor(2, seen)}));
  calls.push_back(call("aten::view", {tensor(factor ? 2 : 1, seen)}, {tensor(3, seen, "f32[2, 2]")}));
  calls.push_back(call("aten::mm", {tensor(3, seen, "f32[2, 2]")}, {tensor(4, 3 * seen, "f32[2, 2]")}));
  for (auto& one : calls)
    for (auto* tensors : {&one.inputs, &one.outputs})
      for (auto& t : *tensors) {
        if (!withIds) t.id = -1;
        if (tensors == &one.inputs && !withInputs) t.hasNorm = false;
      }
  return result;
}

TEST(CompareNumbers, J12_equalRunsAgree) {
  const auto comparison = compareNumbers(run(), run(), tolerance);
  EXPECT_FALSE(comparison.first);
  EXPECT_EQ(comparison.compared, 3u);
}

TEST(CompareNumbers, J12_stepsOverAnOpOfOneRunThatChangesNothing) {
  const auto comparison = compareNumbers(run(), run(1.0), tolerance);
  EXPECT_FALSE(comparison.first);
  EXPECT_EQ(comparison.onlyInB, 1u);
  EXPECT_EQ(comparison.onlyInA, 0u);
}

TEST(CompareNumbers, J12_namesTheOpsThatMadeTheFirstDifferingInput) {
  for (const bool withInputs : {true, false})
    for (const bool withIds : {true, false}) {
      if (!withInputs && !withIds) continue;  // nothing then says who made what
      const auto a = run({}, withInputs, withIds), b = run(1.001, withInputs, withIds);
      const auto comparison = compareNumbers(a, b, tolerance);
      ASSERT_TRUE(comparison.first);
      EXPECT_EQ(a.calls[comparison.first->a].op, "aten::view");
      ASSERT_TRUE(comparison.first->madeInA) << withInputs << withIds;
      EXPECT_EQ(a.calls[*comparison.first->madeInA].op, "aten::gelu");
      ASSERT_TRUE(comparison.first->madeInB);
      EXPECT_EQ(b.calls[*comparison.first->madeInB].op, "aten::mul.Tensor");
      EXPECT_TRUE(comparison.first->aloneInB);
      EXPECT_FALSE(comparison.first->aloneInA);
    }
}

TEST(CompareNumbers, J12_namesTheOpItselfWhereItsInputsAgree) {
  auto b = run();
  b.calls[2].outputs[0].norm *= 1.01;
  const auto comparison = compareNumbers(run(), b, tolerance);
  ASSERT_TRUE(comparison.first);
  EXPECT_EQ(comparison.first->a, 2u);
  EXPECT_FALSE(comparison.first->input);
}

TEST(CompareNumbers, hashesHaveToBeEqual) {
  auto a = run(), b = run();
  a.hashes = b.hashes = true;
  b.calls[2].outputs[0].norm = std::nextafter(b.calls[2].outputs[0].norm, 100.0);
  EXPECT_TRUE(compareNumbers(a, b, tolerance).first);
}

TEST(CompareNumbers, relativeDifferences) {
  const auto nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(relativeDifference(nan, nan), 0);
  EXPECT_EQ(relativeDifference(inf, inf), 0);
  EXPECT_EQ(relativeDifference(nan, 1), inf);
  EXPECT_EQ(relativeDifference(-1, 1), 2);
  EXPECT_EQ(relativeDifference(0, 0), 0);
}

}  // namespace
}  // namespace retrograd

#include "core/torch/grad/number_ops.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace retrograd {
namespace {

// tests/core/sizes/number_test.cpp tests the results of the operators.

TEST(NumberOps, TakeAndGiveArguments) {
  EXPECT_EQ(evaluateNumberOp("_operator.floordiv", {Argument::ofInt(-7), Argument::ofInt(2)}), Argument::ofInt(-4));
  EXPECT_EQ(evaluateNumberOp("_operator.truediv", {Argument::ofInt(3), Argument::ofInt(2)}), Argument::ofReal(1.5));
  EXPECT_EQ(evaluateNumberOp("_operator.lt", {Argument::ofInt(3), Argument::ofReal(3.5)}), Argument::ofBool(true));
  EXPECT_EQ(evaluateNumberOp("torch.sym_sum", {Argument::ofList({Argument::ofInt(3), Argument::ofInt(4)})}),
            Argument::ofInt(7));
}

// Integers meet bit by bit, bools as bools.
TEST(NumberOps, AndOrOfIntegersAreBits) {
  EXPECT_EQ(evaluateNumberOp("_operator.and_", {Argument::ofInt(6), Argument::ofInt(3)}), Argument::ofInt(2));
  EXPECT_EQ(evaluateNumberOp("_operator.or_", {Argument::ofInt(6), Argument::ofInt(3)}), Argument::ofInt(7));
  EXPECT_EQ(evaluateNumberOp("_operator.and_", {Argument::ofBool(true), Argument::ofBool(false)}),
            Argument::ofBool(false));
}

TEST(NumberOps, RefuseWhatIsNotArithmetic) {
  EXPECT_FALSE(evaluateNumberOp("os.system", {}));
  EXPECT_THROW(evaluateNumberOp("_operator.floordiv", {Argument::ofInt(1), Argument::ofInt(0)}), Error);
  EXPECT_THROW(evaluateNumberOp("_operator.add", {Argument::ofString("a"), Argument::ofInt(0)}), Error);
  EXPECT_THROW(evaluateNumberOp("_operator.add", {Argument::ofComplex(1, 1), Argument::ofInt(0)}), Error);
  EXPECT_THROW(evaluateNumberOp("_operator.add", {}), Error);
  EXPECT_THROW(evaluateNumberOp("_operator.neg", {Argument::ofInt(1), Argument::ofInt(0)}), Error);
}

TEST(NumberOps, ErrorsNameTheOperator) {
  try {
    evaluateNumberOp("_operator.lshift", {Argument::ofInt(1), Argument::ofInt(-1)});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("_operator.lshift"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace retrograd

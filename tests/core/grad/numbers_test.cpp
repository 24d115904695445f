#include "core/grad/numbers.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace retrograd {
namespace {

std::int64_t integer(std::string_view op, std::int64_t a, std::int64_t b) {
  return evaluateNumberOp(op, {Argument::ofInt(a), Argument::ofInt(b)})->integer;
}

TEST(Numbers, FloorDivisionAndModuloAreePythons) {
  EXPECT_EQ(integer("_operator.floordiv", 7, 2), 3);
  EXPECT_EQ(integer("_operator.floordiv", -7, 2), -4);
  EXPECT_EQ(integer("_operator.mod", -7, 3), 2);
  EXPECT_EQ(integer("_operator.mod", 7, -3), -2);
  EXPECT_EQ(integer("_operator.floordiv", std::numeric_limits<std::int64_t>::min(), -1), std::numeric_limits<std::int64_t>::min());
}

TEST(Numbers, TypesFollowPython) {
  EXPECT_EQ(evaluateNumberOp("_operator.truediv", {Argument::ofInt(3), Argument::ofInt(2)})->kind, Argument::Kind::real);
  EXPECT_EQ(evaluateNumberOp("_operator.mul", {Argument::ofInt(3), Argument::ofReal(2)})->kind, Argument::Kind::real);
  EXPECT_EQ(evaluateNumberOp("torch.sym_max", {Argument::ofInt(3), Argument::ofInt(5)})->integer, 5);
  EXPECT_EQ(evaluateNumberOp("_operator.pow", {Argument::ofInt(3), Argument::ofInt(4)})->integer, 81);
}

TEST(Numbers, RefusesWhatIsNoArithmetic) {
  EXPECT_FALSE(evaluateNumberOp("os.system", {}));
  EXPECT_THROW(evaluateNumberOp("_operator.floordiv", {Argument::ofInt(1), Argument::ofInt(0)}), Error);
  EXPECT_THROW(evaluateNumberOp("_operator.add", {Argument::ofString("a"), Argument::ofInt(0)}), Error);
  EXPECT_THROW(evaluateNumberOp("_operator.add", {}), Error);
}

}  // namespace
}  // namespace retrograd

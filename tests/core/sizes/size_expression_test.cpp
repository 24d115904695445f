#include "core/sizes/size_expression.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

std::optional<std::int64_t> at(std::string_view text, std::int64_t s0, std::int64_t s1 = 0) {
  return evaluateSize(text, {{"s0", s0}, {"s1", s1}});
}

TEST(SizeExpression, hasPythonsPrecedence) {
  EXPECT_EQ(at("2*s0", 5), 10);
  EXPECT_EQ(at("s0 + 2*s1 - 1", 5, 3), 10);
  EXPECT_EQ(at("(s0 + 1)//2*3", 5), 9);
  EXPECT_EQ(at("2*s0//4", 5), 2);
  EXPECT_EQ(at("-s0**2", 3), -9);
  EXPECT_EQ(at("2**-1*s0", 8), 4);
  EXPECT_EQ(at("s0 - ((s0 + 1)//2)", 7), 3);
  EXPECT_EQ(at("s0 % 4 == 0 and not s1 > 2", 8, 2), 1);
  EXPECT_EQ(at("s0 % 4 == 0 and not s1 > 2", 8, 3), 0);
  EXPECT_EQ(at("s0 != 8 or s1 <= 3", 8, 3), 1);
}

TEST(SizeExpression, dividesAsPythonDoes) {
  EXPECT_EQ(at("s0//2", -7), -4);
  EXPECT_EQ(at("s0 % 4", -7), 1);
  EXPECT_EQ(at("s0//(-2)", 7), -4);
  EXPECT_EQ(at("CeilDiv(s0, 4)", 9), 3);
  EXPECT_EQ(at("s0//s1", 7, 0), std::nullopt);
  EXPECT_EQ(at("s0 % s1", 7, 0), std::nullopt);
}

TEST(SizeExpression, knowsTheFunctionsOfExport) {
  EXPECT_EQ(at("Max(1, s0 - 3)", 2), 1);
  EXPECT_EQ(at("Max(1, s0 - 3, s1)", 8, 9), 9);
  EXPECT_EQ(at("Min(50, s0)", 8), 8);
  EXPECT_EQ(at("torch.sym_max(1, (-3) + s0)", 9), 6);
  EXPECT_EQ(at("TruncToInt(0.5*ToFloat(2*s0))", 9), 9);
  EXPECT_EQ(at("CeilToInt(IntTrueDiv(s0, 2))", 9), 5);
  EXPECT_EQ(at("Mod(s0, 4)", 9), 1);
  EXPECT_EQ(at("Where(s0 > 3, s0, 3)", 2), 3);
  EXPECT_EQ(at("1/2*s0", 6), 3);
  EXPECT_EQ(at("1/2*s0", 7), std::nullopt) << "half of it is no size";
}

TEST(SizeExpression, distinguishesConditionsFromSizes) {
  for (const auto* text : {"s0 > 3", "s0 == 1 and s1 == 2", "not (s0 > 3)"})
    EXPECT_TRUE(SizeExpression::parse(text)->isCondition()) << text;
  for (const auto* text : {"s0", "2", "s0 + (s1 > 2)", "Where(s0 > 3, s0, 3)"})
    EXPECT_FALSE(SizeExpression::parse(text)->isCondition()) << text;
}

TEST(SizeExpression, listsItsSymbolsInOrder) {
  EXPECT_EQ(SizeExpression::parse("s1*(s0 + s1)")->symbols(), (std::vector<std::string>{"s1", "s0"}));
  EXPECT_EQ(evaluateSize("s0 + u0", {{"s0", 1}}), std::nullopt);
}

TEST(SizeExpression, refusesWhatItDoesNotKnow) {
  for (const auto* text :
       {"", "s0 +", "2 s0", "f(s0)", "(s0", "s0)", "Max()", "Mod(s0)", "x.size()", "s0 = 1", "L['x']", "s0 ** ", "+"})
    EXPECT_FALSE(SizeExpression::parse(text)) << text;
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += '(';
  EXPECT_FALSE(SizeExpression::parse(deep + "s0"));
  EXPECT_FALSE(SizeExpression::parse(std::string(10000, '-') + "1"));
}

TEST(SizeExpression, doesNotOverflow) {
  constexpr auto large = std::int64_t{1} << 62;
  EXPECT_EQ(at("4*s0", large), std::nullopt);
  EXPECT_EQ(at("s0 + s0", large), std::nullopt);
  EXPECT_EQ(at("s0**5", large), std::nullopt);
  EXPECT_EQ(at("-9223372036854775807 - s0", 2), std::nullopt);
  EXPECT_EQ(at("(-9223372036854775807 - 1)//(-1)", 0), std::nullopt);
  EXPECT_EQ(at("10.0**30*s0", 1), std::nullopt);
}

TEST(SizeExpression, isSolvedForASymbol) {
  const auto solve = [](std::string_view text, std::int64_t value, SizeBindings known = {}) {
    return SizeExpression::parse(text)->solve("s0", value, std::move(known));
  };
  EXPECT_EQ(solve("s0", 7), 7);
  EXPECT_EQ(solve("2*s0", 8), 4);
  EXPECT_EQ(solve("2*s0", 7), std::nullopt);
  EXPECT_EQ(solve("3*s0 - 2", 10), 4);
  EXPECT_EQ(solve("s0*s1", 12, {{"s1", 3}}), 4);
  EXPECT_EQ(solve("s0*s1", 12), std::nullopt);
  EXPECT_EQ(solve("s0**2", 16), std::nullopt) << "only what is linear";
}

}  // namespace
}  // namespace retrograd

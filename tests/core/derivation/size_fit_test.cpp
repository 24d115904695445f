#include "core/derivation/size_fit.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

const std::vector<SizeBindings> points{{{"b", 4}, {"t", 6}},  {{"b", 7}, {"t", 10}}, {{"b", 12}, {"t", 5}},
                                       {{"b", 9}, {"t", 17}}, {{"b", 5}, {"t", 8}},  {{"b", 14}, {"t", 11}}};

/// The expression found for what `expression` gives at the points.
std::string found(SizeFit& fit, const std::string& expression) {
  std::vector<std::int64_t> numbers;
  for (const auto& point : points) numbers.push_back(*evaluateSize(expression, point));
  return fit.expressionOf(numbers).value_or("none");
}
std::string found(const std::string& expression, const std::vector<std::string>& known = {}) {
  SizeFit fit({"b", "t"}, points);
  for (const auto& text : known) fit.know(text);
  return found(fit, expression);
}

TEST(SizeFit, findsProductsAndSums) {
  EXPECT_EQ(found("t"), "t");
  EXPECT_EQ(found("16*b"), "16*b");
  EXPECT_EQ(found("t*b"), "b*t");
  EXPECT_EQ(found("b*t*t*4"), "4*b*t*t");
  EXPECT_EQ(found("t - 1"), "t - 1");
  EXPECT_EQ(found("2*b + 3"), "2*b + 3");
  EXPECT_EQ(found("5 - 2*t"), "-2*t + 5");
  EXPECT_EQ(found("b + t"), "b + t");
  EXPECT_EQ(found("t - 3*b + 1"), "t - 3*b + 1");
  EXPECT_EQ(found("b*t - t"), "b*t - t");
}

TEST(SizeFit, findsQuotientsWithoutRemainder) {
  SizeFit fit({"t"}, {{{"t", 6}}, {{"t", 12}}, {{"t", 30}}, {{"t", 18}}});
  EXPECT_EQ(fit.expressionOf({8, 16, 40, 24}), "4*t//3");
  EXPECT_EQ(fit.expressionOf({3, 6, 15, 9}), "t//2");
  EXPECT_EQ(fit.expressionOf({3, 6, 15, 10}), std::nullopt);
}

TEST(SizeFit, aConstantIsNotAnExpression) { EXPECT_EQ(found("8"), ""); }

TEST(SizeFit, takesTheFilesWordFirst) {
  EXPECT_EQ(found("(t + 1)//2"), "none");
  EXPECT_EQ(found("(t + 1)//2", {"(t + 1)//2"}), "(t + 1)//2");
  EXPECT_EQ(found("3*((t + 1)//2)*b", {"(t + 1)//2"}), "3*b*((t + 1)//2)");
  EXPECT_EQ(found("t - ((t + 1)//2)", {"(t + 1)//2"}), "t - ((t + 1)//2)");
  EXPECT_EQ(found("(b + 1)*(t + 1)", {"b + 1", "t + 1"}), "(b + 1)*(t + 1)");
  EXPECT_EQ(found("2*Max(1, t - 3)", {"Max(1, t - 3)"}), "2*Max(1, t - 3)");
  EXPECT_EQ(found("t", {"Max(1, t)"}), "t") << "a symbol alone is simpler";
}

TEST(SizeFit, doesNotGuess) {
  EXPECT_EQ(found("t**4 % 13"), "none");
  SizeFit fit({"t"}, {{{"t", 4}}, {{"t", 6}}});
  EXPECT_EQ(fit.expressionOf({4, 6}), "t");
  EXPECT_EQ(fit.expressionOf({8, 12}), std::nullopt) << "one factor, two points: nothing is left to test it";
  SizeFit three({"t"}, {{{"t", 4}}, {{"t", 6}}, {{"t", 9}}});
  EXPECT_EQ(three.expressionOf({8, 12, 18}), "2*t");
  EXPECT_EQ(three.expressionOf({5, 7, 10}), std::nullopt) << "a factor and a constant ask for four points";
}

TEST(SizeFit, findsReciprocals) {
  SizeFit fit({"b", "t"}, points);
  const auto reals = [](double numerator, std::int64_t less, double add = 0) {
    std::vector<double> numbers;
    for (const auto& point : points) numbers.push_back(numerator / static_cast<double>(point.at("t") - less) + add);
    return numbers;
  };
  EXPECT_EQ(fit.realExpressionOf(reals(1, 0)), "1/t");
  EXPECT_EQ(fit.realExpressionOf(reals(2, 1)), "2/(t - 1)");
  EXPECT_EQ(fit.realExpressionOf(reals(2, 1, 1e-9)), std::nullopt);
  EXPECT_EQ(fit.realExpressionOf(std::vector<double>{4, 7, 12, 9, 5, 14}), "b");
}

TEST(SizeFit, largeNumbersAreLeftAlone) {
  SizeFit fit({"b", "t"}, points);
  constexpr auto large = std::int64_t{1} << 62;
  EXPECT_EQ(fit.expressionOf({large, -large, large, -large, large, -large}), std::nullopt);
}

}  // namespace
}  // namespace retrograd

#include "core/trace/effects.h"

#include <gtest/gtest.h>

#include "tests/core/formats/stub_symbols.h"

namespace retrograd {
namespace {

TEST(Effects, FollowFlags) {
  const auto norm = *test::stubLookup("aten.batch_norm.default");
  std::vector<Argument> arguments(9, Argument::ofNone());
  arguments[3] = Argument::ofOperand(1);
  arguments[4] = Argument::ofOperand(2);
  arguments[5] = Argument::ofBool(true);
  EXPECT_EQ(writtenArguments(norm, arguments), (std::vector<std::size_t>{3, 4}));
  arguments[5] = Argument::ofBool(false);
  EXPECT_TRUE(writtenArguments(norm, arguments).empty());
  auto dropout =
      test::parseSymbol("aten.dropout.default", "aten::dropout(Tensor input, float p, bool train) -> Tensor");
  dropout.isRandom = true;
  EXPECT_EQ(effectsOf(dropout, std::vector{Argument::ofOperand(0), Argument::ofReal(0.5), Argument::ofBool(true)}),
            effect::random);
  EXPECT_EQ(effectsOf(dropout, std::vector{Argument::ofOperand(0), Argument::ofReal(0.5), Argument::ofBool(false)}), 0);
}

TEST(Effects, AWriteThatNoSchemaMarksMayNeedNoFlag) {
  const auto gather = test::parseSymbol(
      "aten.batch_norm_gather_stats.default",
      "aten::batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? "
      "running_var, float momentum, float eps, int count) -> (Tensor, Tensor)");
  std::vector<Argument> arguments(8, Argument::ofOperand(0));
  EXPECT_EQ(writtenArguments(gather, arguments), (std::vector<std::size_t>{3, 4}));
  arguments[3] = Argument::ofNone();
  EXPECT_EQ(writtenArguments(gather, arguments), (std::vector<std::size_t>{4}));
}

}  // namespace
}  // namespace retrograd

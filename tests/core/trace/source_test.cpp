// Which frame of a stack belongs to a custom autograd.Function.
#include "core/trace/source.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

const std::string capture = "retrograd.capture(model, x, loss=lambda out: Loss.apply(out, y))";

TEST(Source, R7_WhatALambdaAppliesIsNotAppliedByTheLineAroundIt) {
  const SourceStack layer = {{"train.py", 9, "<module>", capture}};
  EXPECT_EQ(customFunctionFrame(layer), nullptr);
  const SourceStack loss = {
      {"train.py", 9, "<module>", capture}, {"train.py", 9, "<lambda>", capture}, {"train.py", 3, "forward", "d = a"}};
  const auto* frame = customFunctionFrame(loss);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->function, "<lambda>");
  EXPECT_EQ(customFunctionName(loss), "Loss");
  const SourceStack plain = {{"train.py", 5, "forward", "return Loss.apply(out, key=lambda a: a)"}};
  EXPECT_TRUE(customFunctionFrame(plain));
}

}  // namespace
}  // namespace retrograd

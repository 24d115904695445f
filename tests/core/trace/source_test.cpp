// Which lines of Python an op has, and which frame of a stack belongs to a custom autograd.Function.
#include "core/trace/source.h"

#include <gtest/gtest.h>

#include "tests/core/trace/build.h"

namespace retrograd {
namespace {

TEST(Source, ADerivedOpHasTheLinesOfItsOriginUnlessItHasItsOwn) {
  test::Builder b;
  const auto x = b.value({2}), y = b.value({2});
  const auto forward = b.bind(b.symbol("aten.sin.default"), {x}, {y});
  const auto backward = b.bind(b.symbol("aten.cos.default"), {x}, {b.value({2})}, {forward, Role::gradient});
  EXPECT_TRUE(sourceOf(b.document, forward).empty());
  EXPECT_TRUE(sourceOf(b.document, backward).empty());
  EXPECT_TRUE(sourceOf(b.document, {}).empty());
  b.document.boundSymbol(forward).source = b.document.internSource({{"model.py", 3, "forward", ""}});
  EXPECT_EQ(sourceOf(b.document, forward).front().line, 3);
  EXPECT_EQ(sourceOf(b.document, backward).front().line, 3);
  b.document.boundSymbol(backward).source = b.document.internSource({{"loss.py", 8, "backward", ""}});
  EXPECT_EQ(sourceOf(b.document, backward).front().line, 8);
}

const std::string capture = "retrograd.capture(model, x, loss=lambda out: Loss.apply(out, y))";

TEST(Source, WhatALambdaAppliesIsNotAppliedByTheLineAroundIt) {
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

// The parts of the .pt2 reader that can be looked at alone: expressions, stack traces, module paths, schema types.
#include <gtest/gtest.h>

#include "core/formats/pt2/pt2_metadata.h"
#include "core/formats/pt2/pt2_values.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

TEST(ShortExpression, printsInfix) {
  EXPECT_EQ(pt2::shortExpression("Symbol('s77', positive=True, integer=True)"), "s77");
  EXPECT_EQ(pt2::shortExpression("Mul(Integer(2), Symbol('s0', integer=True))"), "2*s0");
  EXPECT_EQ(pt2::shortExpression("Mul(Integer(2), Add(Symbol('s0'), Integer(1)))"), "2*(s0 + 1)");
  EXPECT_EQ(pt2::shortExpression("FloorDiv(Add(Symbol('s0'), Integer(-1)), Integer(2))"), "(s0 - 1)//2");
  EXPECT_EQ(
      pt2::shortExpression("Add(Symbol('s0'), Mul(Integer(-1), FloorDiv(Add(Symbol('s0'), Integer(1)), Integer(2))))"),
      "s0 - ((s0 + 1)//2)");
  EXPECT_EQ(pt2::shortExpression("Add(Symbol('s0'), FloorDiv(Mul(Integer(-1), Symbol('s0')), Integer(2)))"),
            "s0 + (-s0)//2");
  EXPECT_EQ(pt2::shortExpression("Add(Integer(4), Mul(Integer(-1), Symbol('s0'), Symbol('s1')))"), "4 - s0*s1");
  EXPECT_EQ(pt2::shortExpression("Max(Integer(1), Symbol('u0'))"), "Max(1, u0)");
  EXPECT_EQ(pt2::shortExpression("GreaterThan(Add(Symbol('s0'), Integer(1)), Integer(0))"), "s0 + 1 >= 0");
  EXPECT_EQ(pt2::shortExpression("s0 + 1"), "s0 + 1");
  EXPECT_EQ(pt2::shortExpression("Mul(Integer(2)"), "Mul(Integer(2)");
}

TEST(StackTrace, isReadInnermostLast) {
  const auto stack = pt2::parseStackTrace(
      "File \"a b.py\", line 3, in forward\n    return self.l(x)\n           ^^^^^^\n  File \"nn/linear.py\", line "
      "134, in forward\n    "
      "return F.linear(");
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack[0].file, "a b.py");
  EXPECT_EQ(stack[0].line, 3);
  EXPECT_EQ(stack[0].function, "forward");
  EXPECT_EQ(stack[0].code, "return self.l(x)");
  EXPECT_EQ(stack[1].line, 134);
  EXPECT_TRUE(pt2::parseStackTrace("nonsense\nFile \"x").empty());
}

TEST(ModulePath, isTheInnermostModules) {
  EXPECT_EQ(pt2::modulePath("L__self__,,M;L__self__l1,l1,torch.nn.Linear"), "l1");
  EXPECT_EQ(pt2::modulePath("L__self__,,M;L__self__layers.0.mlp@1,layers.0.mlp,torch.nn.Linear"), "layers.0.mlp");
  EXPECT_EQ(pt2::modulePath("L__self__,,M"), "");
  EXPECT_EQ(pt2::modulePath("L__self__,L['self'],M;L__self___layers_0,L['self'].layers[0].mlp,N"), "layers.0.mlp");
  EXPECT_EQ(pt2::modulePath("k,L['self']._modules['a']._modules['b'],N"), "a.b");
  EXPECT_EQ(pt2::modulePath("k,getattr(L['self'].layers, '0'),N"), "layers.0");
  EXPECT_EQ(pt2::modulePath("nonsense"), "");
}

TEST(SchemaType, isTakenApart) {
  const auto fixed = parseSchemaType("SymInt[2]?");
  EXPECT_EQ(fixed.element, "SymInt");
  EXPECT_TRUE(fixed.list && fixed.optional && !fixed.optionalElement);
  EXPECT_EQ(fixed.length, 2);
  const auto tensors = parseSchemaType("Tensor?[]");
  EXPECT_TRUE(tensors.isTensorList() && tensors.optionalElement && !tensors.optional);
  EXPECT_TRUE(parseSchemaType("Tensor").isTensor());
}

}  // namespace
}  // namespace retrograd

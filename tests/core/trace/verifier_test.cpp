#include "core/trace/verifier.h"

#include <gtest/gtest.h>

#include "tests/core/trace/build.h"

namespace retrograd {
namespace {

using test::Builder;

testing::AssertionResult complains(const Builder& b, std::string_view about) {
  const auto problems = verify(b.document, b.trace);
  for (const auto& p : problems)
    if (p.message.find(about) != std::string::npos) return testing::AssertionSuccess();
  auto result = testing::AssertionFailure()
                << "no complaint about \"" << about << "\", but " << problems.size() << " others";
  for (const auto& p : problems) result << "; " << p.message;
  return result;
}

TEST(Verifier, acceptsASoundTrace) {
  Builder b;
  const auto x = b.input("x", {2});
  b.trace.outputs = {b.call("aten.sin.default", {x}), ValueId()};
  EXPECT_TRUE(verify(b.document, b.trace).empty());
}

TEST(Verifier, operandBeforeDefinition) {
  Builder b;
  b.call("aten.sin.default", {b.value({2})});
  EXPECT_TRUE(complains(b, "used before it is defined"));
}

TEST(Verifier, valueDefinedTwice) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto out = b.value({2});
  b.bind(b.symbol("aten.sin.default"), {x}, {out});
  b.bind(b.symbol("aten.sin.default"), {x}, {out});
  EXPECT_TRUE(complains(b, "defined twice"));
}

TEST(Verifier, anOpMayReturnItsOperand) {
  Builder b;
  const auto x = b.input("x", {2});
  b.bind(b.symbol("aten.contiguous.default"), {x}, {x});
  EXPECT_TRUE(verify(b.document, b.trace).empty());
}

TEST(Verifier, idsOutOfRange) {
  Builder b;
  b.bind(b.symbol("aten.sin.default"), {ValueId(99)}, {b.value({2})});
  b.trace.ops.push_back(BoundSymbolId(77));
  EXPECT_TRUE(complains(b, "operand #99 is out of range"));
  EXPECT_TRUE(complains(b, "op #77 is out of range"));
}

TEST(Verifier, holesAndOperandsMustAgree) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto s = b.symbol("aten.sin.default");
  b.bind(s, CallPattern{{Argument::ofOperand(0)}, {}, 2, {}}, {x}, {b.value({2})});
  EXPECT_TRUE(complains(b, "2 holes"));
  b.bind(s, CallPattern{{Argument::ofOperand(3)}, {}, 1, {}}, {x}, {b.value({2})});
  EXPECT_TRUE(complains(b, "beyond"));
  EXPECT_TRUE(complains(b, "fills no hole"));
}

TEST(Verifier, outputsAsTheReturnsGroupThem) {
  Builder b;
  const auto x = b.input("x", {2});
  b.bind(b.symbol("aten.split.Tensor"), CallPattern{{Argument::ofOperand(0)}, {}, 1, {3}}, {x},
         {b.value({1}), b.value({1})});
  EXPECT_TRUE(complains(b, "returns 3 values"));
  b.bind(b.symbol("aten.sin.default"), {x}, {b.value({1}), b.value({1})});
  EXPECT_TRUE(complains(b, "schema returns 1"));
}

TEST(Verifier, derivedOpsNeedAnOrigin) {
  Builder b;
  const auto x = b.input("x", {2});
  b.trace.kind = TraceKind::backward;
  b.call("aten.sin.default", {x});
  EXPECT_TRUE(complains(b, "has no origin"));
  Origin empty;
  empty.role = Role::gradient;
  b.call("aten.cos.default", {x}, empty);
  EXPECT_TRUE(complains(b, "neither an op nor a value"));
}

TEST(Verifier, tensorsNeedStorageAndMeta) {
  Builder b;
  const auto x = b.input("x", {2});
  Value bare;
  bare.meta = b.meta({2});
  b.bind(b.symbol("aten.sin.default"), {x}, {b.document.addValue(bare)});
  EXPECT_TRUE(complains(b, "no storage"));
  b.bind(b.symbol("aten.sin.default"), {x}, {b.document.addValue(Value())});
  EXPECT_FALSE(complains(b, "no shape and dtype")) << "a computation may leave it to the grad transform";
  b.trace.kind = TraceKind::forward;
  EXPECT_TRUE(complains(b, "no shape and dtype"));
}

TEST(Verifier, resultsMustBeDefined) {
  Builder b;
  b.trace.outputs = {b.value({2})};
  b.trace.resultCount = 5;
  EXPECT_TRUE(complains(b, "result t0 is not defined"));
  EXPECT_TRUE(complains(b, "more results"));
}

}  // namespace
}  // namespace retrograd

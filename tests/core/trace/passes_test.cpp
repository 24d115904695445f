#include <gtest/gtest.h>

#include "core/trace/dead_code.h"
#include "core/trace/effects.h"
#include "core/trace/last_use.h"
#include "tests/core/trace/build.h"

namespace retrograd {
namespace {

using test::Builder;

std::vector<std::string> names(const Builder& b, const Trace& trace) {
  std::vector<std::string> list;
  for (auto op : trace.ops) list.push_back(b.document.symbol(op).name);
  return list;
}
using Names = std::vector<std::string>;

TEST(DeadCode, dropsWhatNobodyReads) {
  Builder b;
  const auto x = b.input("x", {2});
  b.call("aten.cos.default", {b.call("aten.exp.default", {x})});
  b.trace.outputs = {b.call("aten.sin.default", {x})};
  b.trace.forwardCount = 3;
  const auto result = eliminateDeadCode(b.document, b.trace);
  EXPECT_EQ(names(b, result), Names{"aten.sin.default"});
  EXPECT_EQ(result.forwardCount, 1u);
  ASSERT_EQ(result.history.size(), 1u);
  EXPECT_EQ(result.history[0].parameters[0].second, "2");
  EXPECT_EQ(b.trace.ops.size(), 3u) << "the trace given must not change";
}

TEST(DeadCode, keepsWritesToWhatIsReadLater) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  b.inPlace("aten.add", y, {x});  // its output is not used, but y's storage is read below
  b.trace.outputs = {b.call("aten.cos.default", {y})};
  EXPECT_EQ(names(b, eliminateDeadCode(b.document, b.trace)),
            (Names{"aten.sin.default", "aten.add_", "aten.cos.default"}));
}

TEST(DeadCode, keepsWritesThroughAViewOfWhatIsRead) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  const auto view = b.value({1}, ValueKind::activation, {}, b.document.value(y).storage);
  b.bind(b.symbol("aten.select.int"), {y}, {view}, {}, effect::view);
  b.inPlace("aten.neg", view);
  b.trace.outputs = {y};
  EXPECT_EQ(names(b, eliminateDeadCode(b.document, b.trace)),
            (Names{"aten.sin.default", "aten.select.int", "aten.neg_"}));
}

TEST(DeadCode, dropsWritesAfterTheLastRead) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  b.trace.outputs = {b.call("aten.cos.default", {y})};
  b.inPlace("aten.neg", y);
  EXPECT_EQ(names(b, eliminateDeadCode(b.document, b.trace)), (Names{"aten.sin.default", "aten.cos.default"}));
}

TEST(DeadCode, keepsWritesToInputsAndBuffers) {
  Builder b;
  const auto buffer = b.input("count", {1}, ValueKind::buffer);
  b.inPlace("aten.neg", buffer);
  EXPECT_EQ(names(b, eliminateDeadCode(b.document, b.trace)), Names{"aten.neg_"});
}

TEST(DeadCode, keepsOpaqueAndRandomOps) {
  Builder b;
  const auto x = b.input("x", {2});
  b.call("aten._assert_async.default", {x}, {}, effect::opaque);
  b.call("aten.rand_like.default", {x}, {}, effect::random);
  EXPECT_EQ(eliminateDeadCode(b.document, b.trace).ops.size(), 2u);
}

/// native_batch_norm's schema marks no write, yet training updates the running statistics.
BoundSymbolId batchNorm(Builder& b, bool training) {
  Symbol s;
  s.name = "aten.native_batch_norm.default";
  s.known = true;
  for (auto argument : {"input", "running_mean", "running_var"}) s.arguments.push_back(Builder::entry(argument));
  s.arguments.push_back(Builder::entry("training", "bool"));
  s.returns.push_back(Builder::entry(""));
  const auto x = b.input("x", {2}), mean = b.input("mean", {2}, ValueKind::buffer),
             var = b.input("var", {2}, ValueKind::buffer);
  CallPattern p{
      {Argument::ofOperand(0), Argument::ofOperand(1), Argument::ofOperand(2), Argument::ofBool(training)}, {}, 3, {}};
  return b.bind(b.document.internSymbol(s), p, {x, mean, var}, {b.value({2})});
}

TEST(Effects, batchNormWritesItsStatisticsInTrainingOnly) {
  Builder b;
  const auto training = batchNorm(b, true);
  const auto inputs = b.trace.inputs;
  EXPECT_EQ(writtenOperands(b.document, training), (std::vector{inputs[1], inputs[2]}));
  EXPECT_TRUE(hasSideEffect(b.document, training));
  EXPECT_EQ(eliminateDeadCode(b.document, b.trace).ops.size(), 1u);
  Builder c;
  EXPECT_TRUE(writtenOperands(c.document, batchNorm(c, false)).empty());
  EXPECT_TRUE(eliminateDeadCode(c.document, c.trace).ops.empty());
}

TEST(Effects, bodyThatWritesMakesTheHigherOrderOpWrite) {
  Builder b;
  const auto x = b.input("x", {2});
  b.inPlace("aten.neg", x);
  Subgraph body{"body", {x}, {}, {}, b.trace.ops};
  b.trace.ops.clear();
  Symbol s;
  s.name = "higher_order.wrap_with_set_grad_enabled";
  s.isHigherOrder = true;
  CallPattern p{{Argument::ofSubgraph(b.document.addSubgraph(body)), Argument::ofOperand(0)}, {}, 1, {}};
  const auto op = b.bind(b.document.internSymbol(s), p, {x}, {});
  EXPECT_EQ(writtenOperands(b.document, op), std::vector{x});
}

TEST(LastUse, valuesGoAfterTheirLastReadResultsNever) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  const auto unused = b.call("aten.exp.default", {y});
  const auto z = b.call("aten.mul.Tensor", {y, x});
  b.trace.outputs = {z};
  const LastUses uses(b.document, b.trace);
  EXPECT_TRUE(uses.values(0).empty());
  EXPECT_EQ(std::vector(uses.values(1).begin(), uses.values(1).end()), std::vector{unused});
  EXPECT_EQ(std::vector(uses.values(2).begin(), uses.values(2).end()), (std::vector{y, x}));
}

TEST(LastUse, storageLivesAsLongAsItsLastView) {
  Builder b;
  const auto x = b.input("x", {2});
  const auto y = b.call("aten.sin.default", {x});
  const auto view = b.value({1}, ValueKind::activation, {}, b.document.value(y).storage);
  b.bind(b.symbol("aten.select.int"), {y}, {view}, {}, effect::view);
  b.trace.outputs = {b.call("aten.cos.default", {view})};
  const LastUses uses(b.document, b.trace);
  EXPECT_EQ(std::vector(uses.values(1).begin(), uses.values(1).end()), std::vector{y});
  EXPECT_TRUE(uses.storages(1).empty());
  EXPECT_EQ(std::vector(uses.storages(2).begin(), uses.storages(2).end()), std::vector{b.document.value(y).storage});
}

}  // namespace
}  // namespace retrograd

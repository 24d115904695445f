#include "core/split/partition.h"

#include <gtest/gtest.h>

#include "tests/core/split/joint.h"

namespace retrograd {
namespace {

using test::JointBuilder;
using test::Lines;

/// Two blocks of one op each, and an op outside of them.
struct Blocks : JointBuilder {
  ValueId x = input("x", {4}), a = forward("aten.sin.default", {x}, "sin", 0, "h.1.act"),
          b = forward("aten.exp.default", {a}, "exp", 0, "h.10"),
          c = forward("aten.cos.default", {b}, "cos", 0, "head");
  Blocks() {
    backward({c});
    auto g = cotangent({4});
    for (auto value : {c, b, a}) g = gradient("aten.mul.Tensor", {g, value});
    trace.outputs.push_back(g);
  }
  Lines recomputed(std::vector<std::string> what) {
    const auto joint = partition(document, trace, {PartitionOptions::defaultKind, {}, std::move(what)}).joint;
    EXPECT_EQ(problems(joint), Lines());
    Lines lines;
    for (auto op : joint.ops)
      if (document.boundSymbol(op).recomputed) lines.push_back(line(op));
    return lines;
  }
};

std::string messageFor(const std::string& what) {
  Blocks m;
  try {
    m.recomputed({what});
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badUse);
    return e.what();
  }
  return "no error";
}

TEST(Partition, DefaultLeavesTheJointAlone) {
  Blocks m;
  const auto result = partition(m.document, m.trace, {});
  EXPECT_EQ(result.joint.ops, m.trace.ops);
  EXPECT_TRUE(result.joint.history.empty());
}

TEST(Partition, MarksAll) {
  Blocks m;
  EXPECT_EQ(m.recomputed({"all"}), (Lines{"bw_sin = sin(x)", "bw_exp = exp(bw_sin)", "bw_cos = cos(bw_exp)"}));
}

TEST(Partition, MarksAModuleWithWhatIsBelowIt) {
  Blocks m;
  EXPECT_EQ(m.recomputed({"h.1"}), Lines{"bw_sin = sin(x)"}) << "h.10 is another module";
  EXPECT_EQ(Blocks().recomputed({"h"}).size(), 2u);
}

TEST(Partition, MarksOpsByNameAndId) {
  Blocks m;
  EXPECT_EQ(m.recomputed({"#exp"}), Lines{"bw_exp = exp(sin)"});
  const auto computationOp = m.document.boundSymbol(m.trace.ops[0]).origin.op;
  EXPECT_EQ(m.recomputed({"#" + std::to_string(computationOp.index), "#cos"}),
            (Lines{"bw_cos = cos(exp)", "bw_sin = sin(x)"}));
}

TEST(Partition, NamesNearModulesAndOps) {
  EXPECT_NE(messageFor("h.2").find("there are h"), std::string::npos) << messageFor("h.2");
  EXPECT_NE(messageFor("hed").find("head"), std::string::npos);
  EXPECT_NE(messageFor("#sine").find("sin"), std::string::npos);
  EXPECT_NE(messageFor("#4711").find("there are"), std::string::npos);
  EXPECT_NE(messageFor("").find("there are"), std::string::npos);
}

TEST(Partition, D9_RunsTwiceOnOneDocument) {
  Blocks m;
  const auto first = m.recomputed({"all"});
  EXPECT_EQ(m.recomputed({"all"}), first);
  EXPECT_EQ(partition(m.document, m.trace, {}).joint.ops, m.trace.ops);
}

TEST(Partition, A23_CheckpointRegionsAreRecomputed_D4_NestedOnesToo) {
  JointBuilder m;
  Symbol checkpoint;
  checkpoint.name = "higher_order.tag_activation_checkpoint";
  checkpoint.isHigherOrder = true;
  BoundSymbol region;
  region.symbol = m.document.internSymbol(checkpoint);
  region.pattern = m.document.internPattern({});
  const auto outer = m.document.addBoundSymbol(region, {}, {});
  region.parent = outer;
  const auto inner = m.document.addBoundSymbol(region, {}, {});
  const auto x = m.input("x", {4}), a = m.forward("aten.sin.default", {x}, "a", 0, {}, outer),
             b = m.forward("aten.exp.default", {a}, "b", 0, {}, inner), c = m.forward("aten.cos.default", {b}, "c");
  m.backward({c});
  auto g = m.cotangent({4});
  for (auto value : {c, b, a}) g = m.gradient("aten.mul.Tensor", {g, value}, "g");
  m.trace.outputs.push_back(g);
  EXPECT_EQ(
      m.backwardOf(partition(m.document, m.trace, {}).joint),
      (Lines{"g = mul(cotangent, c)", "bw_a = sin(x)", "bw_b = exp(bw_a)", "g = mul(g, bw_b)", "g = mul(g, bw_a)"}));
}

TEST(Partition, MinCutKeepsToTheMarks) {
  Blocks m;
  const auto joint = partition(m.document, m.trace, {PartitionOptions::minCut, {}, {"#sin"}}).joint;
  for (const auto& line : m.backwardOf(joint)) EXPECT_EQ(line.find("(sin"), std::string::npos) << line;
}

TEST(Partition, TheHistorySaysWhatWasAskedFor) {
  Blocks m;
  const auto joint = partition(m.document, m.trace, {PartitionOptions::minCut, 1000, {"#sin"}}).joint;
  ASSERT_EQ(joint.history.size(), 2u);
  EXPECT_EQ(joint.history[0].pass, "Recomputation");
  const auto& given = joint.history[0].parameters;
  EXPECT_NE(std::find(given.begin(), given.end(), std::pair<std::string, std::string>("budget", "1000")), given.end());
}

}  // namespace
}  // namespace retrograd

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/layout/labels.h"
#include "core/layout/scene.h"
#include "tests/core/layout/ladder.h"

namespace retrograd::layout {
namespace {

using test::Ladder;

std::string labelsOf(const GraphTree& tree, std::int32_t group) {
  std::string text;
  for (auto child = group + 1; child < tree.node(group).end; child = tree.next(child))
    text += (text.empty() ? "" : " ") +
            boxText(tree, child, tree.node(child).ops[Lane::forward] > 0 ? Lane::forward : Lane::backward).title;
  return text;
}

TEST(GraphTree, foldsByModulePath) {
  Ladder m;
  auto x = m.b.input("x", {4});
  x = m.forward("aten.sin.default", {x}, "net.a");
  x = m.forward("aten.cos.default", {x}, "net.a");
  x = m.forward("aten.exp.default", {x}, "net.b.c");
  m.forward("aten.tanh.default", {x}, "other");
  const auto tree = m.tree();
  EXPECT_EQ(labelsOf(tree, 0), "net other \xc2\xb7 tanh");
  EXPECT_EQ(labelsOf(tree, 1), "a b.c \xc2\xb7 exp");
  EXPECT_EQ(tree.node(0).ops[Lane::forward], 4);
}

TEST(GraphTree, aModuleThatIsCalledTwiceIsThereTwice) {
  Ladder m;
  auto x = m.b.input("x", {4});
  for (const char* module : {"block.relu", "block.conv", "block.relu"}) {
    x = m.forward("aten.sin.default", {x}, module);
    x = m.forward(module == std::string("block.conv") ? "aten.exp.default" : "aten.cos.default", {x}, module);
  }
  const auto tree = m.tree();
  EXPECT_EQ(labelsOf(tree, 0), "relu conv relu (2)") << "the root is the only module, block";
  // What flows between them never runs in a circle.
  for (const auto& flow : tree.flows(0)) EXPECT_LT(flow.from, flow.to);
}

TEST(GraphTree, equalLayersOneBehindTheOtherFold) {
  Ladder m;
  m.layers(8);
  const auto tree = m.tree();
  EXPECT_EQ(labelsOf(tree, 0), "h.0 \xe2\x80\xa6 7, 8 times");
  EXPECT_EQ(tree.node(1).kind, TreeNode::Kind::run);
  EXPECT_EQ(boxText(tree, 1, Lane::forward).brief,
            "h.0\xe2\x80\xa6"
            "7 \xc3\x97"
            "8")
      << "where a box is too small for the title, the count stays";
  const auto first = tree.node(2).structure;
  EXPECT_EQ(tree.node(tree.next(tree.next(2))).structure, tree.node(tree.next(2)).structure)
      << "layers within the run are laid out alike";
  EXPECT_NE(first, 0u);
}

TEST(GraphTree, layersThatDifferDoNotFold) {
  Ladder m;
  auto x = m.b.input("x", {4});
  for (int i = 0; i < 4; ++i) {
    x = m.forward("aten.sin.default", {x}, "h." + std::to_string(i));
    x = m.forward(i == 2 ? "aten.exp.default" : "aten.cos.default", {x}, "h." + std::to_string(i));
  }
  const auto tree = m.tree();
  for (std::int32_t i = 0; i < tree.size(); ++i) EXPECT_NE(tree.node(i).kind, TreeNode::Kind::run);
}

TEST(GraphTree, projectionsSideBySideDoNotFold) {
  Ladder m;
  auto x = m.b.input("x", {4});
  x = m.forward("aten.exp.default", {x}, "net.first");
  for (const char* name : {"net.q", "net.k", "net.v"})
    m.forward("aten.sin.default", {m.forward("aten.cos.default", {x}, name)}, name);
  const auto tree = m.tree();
  for (std::int32_t i = 0; i < tree.size(); ++i) EXPECT_NE(tree.node(i).kind, TreeNode::Kind::run);
}

TEST(GraphTree, everyBackwardOpIsInTheRungOfItsOrigin) {
  Ladder m;
  m.layers(5);
  m.backward();
  const auto tree = m.tree();
  int seen = 0;
  for (auto op : m.b.trace.ops) {
    const auto node = tree.nodeOf(op);
    ASSERT_GE(node, 0);
    const auto& origin = m.b.document.boundSymbol(op).origin;
    if (origin.role != Role::gradient) continue;
    EXPECT_EQ(tree.node(tree.operationOf(node)).op, origin.op);
    EXPECT_EQ(tree.node(node).lane, Lane::backward);
    ++seen;
  }
  EXPECT_EQ(seen, 10);
}

TEST(GraphTree, iterationsOfALoopGetTheirOwnBackward) {
  Ladder m;
  auto x = m.b.input("x", {4});
  const auto sin = m.from("sin", ""), cos = m.from("cos", "");
  std::vector<ValueId> made;
  for (int i = 0; i < 3; ++i) {
    x = m.b.call("aten.sin.default", {x}, {sin, Role::forward});
    made.push_back(x);
    x = m.b.call("aten.cos.default", {x}, {cos, Role::forward});
  }
  m.border();
  auto g = m.b.input("cotangent", {4}, ValueKind::cotangent);
  std::vector<BoundSymbolId> backward;
  for (int i = 3; i-- > 0;) {
    g = m.b.call("aten.neg.default", {g}, {cos, Role::gradient});
    g = m.b.call("aten.mul.Tensor", {g, made[static_cast<std::size_t>(i)]}, {sin, Role::gradient});
    backward.push_back(m.b.trace.ops.back());
  }
  const auto tree = m.tree();
  std::set<std::int32_t> rungs;
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const auto rung = tree.operationOf(tree.nodeOf(backward[i]));
    rungs.insert(rung);
    EXPECT_EQ(rung, tree.operationOf(tree.nodeOf(m.b.document.value(made[2 - i]).producer)))
        << "the last iteration's backward runs first";
  }
  EXPECT_EQ(rungs.size(), 3u);
}

TEST(GraphTree, aSumWithoutAnOriginIsWithItsLastTerm) {
  Ladder m;
  m.layers(1);
  m.backward();
  const auto last = m.b.document.outputs(m.b.trace.ops.back())[0];
  m.b.call("aten.add.Tensor", {last, last}, {{}, Role::accumulation});
  const auto sum = m.b.trace.ops.back();
  const auto tree = m.tree();
  EXPECT_EQ(tree.operationOf(tree.nodeOf(sum)), tree.operationOf(tree.nodeOf(m.b.document.value(last).producer)));
}

TEST(GraphTree, flowsAreLiftedAndCounted) {
  Ladder m;
  auto x = m.b.input("x", {4});
  const auto a = m.forward("aten.sin.default", {x}, "one"), b = m.forward("aten.cos.default", {a}, "one");
  m.forward("aten.exp.default", {m.forward("aten.mul.Tensor", {a, b}, "two")}, "two");
  const auto tree = m.tree();
  ASSERT_EQ(tree.flows(0).size(), 1u);
  EXPECT_EQ(tree.flows(0)[0].data, 2u) << "two values between the modules are one line";
  const auto one = 1, two = tree.next(1);
  ASSERT_EQ(tree.label(one), "one");
  int out = 0, in = 0;
  for (const auto& flow : tree.flows(one)) out += flow.to == bottomPort;
  for (const auto& flow : tree.flows(two)) in += flow.from == topPort;
  EXPECT_EQ(out, 2);
  EXPECT_EQ(in, 1) << "one op reads both";
}

TEST(GraphTree, savedTensorsHaveTheirBytesOnce) {
  Ladder m;
  m.layers(2);
  m.backward();
  const auto tree = m.tree();
  // Ladder::backward() reads the output of each forward op: 4 floats each.
  EXPECT_EQ(tree.node(0).savedBytes, 4 * 4 * 4);
  std::int64_t across = 0;
  for (std::int32_t i = 0; i < tree.size(); ++i)
    for (const auto& saved : tree.savedFlows(i)) across += saved.bytes;
  EXPECT_EQ(across, 4 * 4 * 4);
}

TEST(GraphTree, parametersAreBadgesAndNoNodes) {
  Ladder m;
  auto x = m.b.input("x", {4});
  const auto w = m.b.input("net.weight", {4}, ValueKind::parameter);
  m.forward("aten.mul.Tensor", {x, w}, "net");
  const auto tree = m.tree();
  EXPECT_EQ(tree.node(0).ops[Lane::forward], 1);
  const auto text = boxText(tree, tree.operationOf(tree.nodeOf(m.b.trace.ops[0])), Lane::forward);
  ASSERT_EQ(text.badges.size(), 2u);
  EXPECT_EQ(text.badges[0].kind, Badge::Kind::input);
  EXPECT_EQ(text.badges[1].kind, Badge::Kind::parameter);
  EXPECT_EQ(text.badges[1].text, "weight");
}

TEST(GraphTree, outputsThatAreNotMadeAreNotValues) {
  Ladder m;
  const auto x = m.forward("aten.sin.default", {m.b.input("x", {4})}, "net");
  const auto kept = m.b.value({4});
  // As convolution_backward gives None where no gradient is asked for.
  m.b.bind(m.b.symbol("aten.convolution_backward.default", 1, 3), {x}, {{}, kept, {}},
           {m.b.document.boundSymbol(m.b.trace.ops[0]).origin.op, Role::gradient});
  m.b.trace.forwardCount = 1;
  const auto tree = m.tree();
  const auto node = tree.nodeOf(m.b.trace.ops.back());
  EXPECT_EQ(tree.makerOf(kept), node);
  EXPECT_EQ(boxText(tree, tree.operationOf(node), Lane::backward).detail, "f32[4]");
}

TEST(GraphTree, pathsOfAnyDepthAreTakenApart) {
  Ladder m;
  auto x = m.b.input("x", {4});
  std::string path = "a";
  for (int i = 0; i < 100'000; ++i) path += ".a";
  m.forward("aten.sin.default", {m.forward("aten.cos.default", {x}, path)}, path + ".b");
  const auto tree = m.tree();
  EXPECT_EQ(tree.node(0).ops[Lane::forward], 2);
}

TEST(GraphTree, buildingIsCancelled) {
  Ladder m;
  m.layers(2000);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(buildTree(m.b.document, m.b.trace, nullptr, Progress(stop.get_token(), {})), Error);
}

}  // namespace
}  // namespace retrograd::layout

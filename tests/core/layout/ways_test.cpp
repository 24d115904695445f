#include "core/layout/ways.h"

#include <gtest/gtest.h>

#include "tests/core/layout/ladder.h"

namespace retrograd::layout {
namespace {

using test::Ladder;

Folds folds(const GraphTree& tree, bool open) {
  Folds all(static_cast<std::size_t>(tree.size()), false);
  for (std::int32_t i = 0; i < tree.size(); ++i) all[static_cast<std::size_t>(i)] = i == 0 || (open && tree.canOpen(i));
  return all;
}

/// Boxes of these ops, in order.
std::vector<std::int32_t> boxesOf(const Scene& scene, const std::vector<BoundSymbolId>& ops) {
  std::vector<std::int32_t> boxes;
  for (auto op : ops) {
    const auto node = scene.tree->nodeOf(op);
    boxes.push_back(scene.shownBox(node, scene.tree->node(node).lane));
  }
  std::sort(boxes.begin(), boxes.end());
  boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
  return boxes;
}

/// a, then b and c in a row and d next to them, which leads nowhere; and the backward.
struct Branch : Ladder {
  BoundSymbolId a, b1, c, d;
  Branch() {
    auto x = b.input("x", {4});
    const auto va = forward("aten.sin.default", {x}, "m");
    a = b.trace.ops.back();
    const auto vb = forward("aten.cos.default", {va}, "m");
    b1 = b.trace.ops.back();
    forward("aten.exp.default", {vb}, "m");
    c = b.trace.ops.back();
    forward("aten.tanh.default", {va}, "m");
    d = b.trace.ops.back();
    backward();
  }
};

// Holds J's path between two ops: what is on a way is lit and nothing else.
TEST(Ways, lightWhatIsBetweenAndNothingElse) {
  const Branch net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, folds(*shaper.tree(), true));
  const auto& tree = *scene.tree;
  const auto ways = waysBetween(scene, {tree.nodeOf(net.a)}, {tree.nodeOf(net.c)});
  EXPECT_EQ(ways.boxes, boxesOf(scene, {net.a, net.b1, net.c}));
  EXPECT_FALSE(ways.edges.empty());
  for (auto i : ways.edges) EXPECT_EQ(scene.edges[static_cast<std::size_t>(i)].lane, Lane::forward);
  // The line from a to d is not among them.
  const auto onlyD = waysBetween(scene, {tree.nodeOf(net.a)}, {tree.nodeOf(net.d)});
  EXPECT_EQ(onlyD.boxes, boxesOf(scene, {net.a, net.d}));
  for (auto i : onlyD.edges) EXPECT_FALSE(std::binary_search(ways.edges.begin(), ways.edges.end(), i));
}

TEST(Ways, againstTheValuesThereIsNone) {
  const Branch net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, folds(*shaper.tree(), true));
  const auto ways = waysBetween(scene, {scene.tree->nodeOf(net.c)}, {scene.tree->nodeOf(net.a)});
  EXPECT_TRUE(ways.boxes.empty() && ways.edges.empty());
}

TEST(Ways, throughClosedGroupsTheirBoxesAreLit) {
  Ladder net;
  net.layers(6);
  net.backward();
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, folds(*shaper.tree(), false));
  const auto& ops = net.b.trace.ops;
  const auto ways = waysBetween(scene, {scene.tree->nodeOf(ops.front())}, {scene.tree->nodeOf(ops[11])});
  EXPECT_EQ(ways.boxes, boxesOf(scene, {ops.front()}));
  EXPECT_EQ(ways.boxes.size(), 1u);
}

// Holds J's labels: a line says the bytes of the values that run along it, each value once.
TEST(Ways, linesHaveTheBytesOfTheirValues) {
  const Branch net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, folds(*shaper.tree(), true));
  const auto bytes = LineIndex(scene).bytes();
  ASSERT_EQ(bytes.size(), scene.edges.size());
  std::size_t checked = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto& line = scene.edges[i];
    if (line.kind == EdgeKind::origin || line.kind == EdgeKind::accumulation) continue;
    EXPECT_EQ(bytes[i], 16 * static_cast<std::int64_t>(line.count)) << name(line.kind);
    ++checked;
  }
  EXPECT_GT(checked, 3u);
}

}  // namespace
}  // namespace retrograd::layout

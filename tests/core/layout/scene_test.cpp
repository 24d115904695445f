#include "core/layout/scene.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/layout/ways.h"
#include "tests/core/layout/ladder.h"

namespace retrograd::layout {
namespace {

using test::Ladder;

Folds everything(const GraphTree& tree) {
  Folds open(static_cast<std::size_t>(tree.size()), false);
  for (std::int32_t i = 0; i < tree.size(); ++i) open[static_cast<std::size_t>(i)] = tree.canOpen(i);
  return open;
}

Folds onlyRoot(const GraphTree& tree) {
  Folds open(static_cast<std::size_t>(tree.size()), false);
  open[0] = true;
  return open;
}

bool overlap(const Rect& a, const Rect& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

struct Net : Ladder {
  explicit Net(int layers = 6) {
    this->layers(layers);
    backward();
  }
};

TEST(Scene, theBackwardLaneMirrorsTheForwardLane) {
  const Net net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, everything(*shaper.tree()));
  int pairs = 0;
  for (const auto& box : scene.boxes) {
    const auto other = scene.box(box.node, Lane::backward);
    if (box.lane != Lane::forward || other < 0) continue;
    const auto& mirror = scene.boxes[static_cast<std::size_t>(other)].rect;
    EXPECT_FLOAT_EQ(box.rect.y, mirror.y);
    EXPECT_FLOAT_EQ(box.rect.height, mirror.height);
    EXPECT_NEAR(scene.axis - box.rect.centre().x, mirror.centre().x - scene.axis, 0.01f);
    ++pairs;
  }
  EXPECT_EQ(pairs, 1 + 6 + 12) << "the run, its layers and their ops";
}

TEST(Scene, whatIsInsideAFrameIsInsideIt) {
  const Net net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, everything(*shaper.tree()));
  for (const auto& box : scene.boxes) {
    const auto around = scene.box(scene.tree->node(box.node).parent, box.lane);
    if (around < 0) continue;
    const auto& frame = scene.boxes[static_cast<std::size_t>(around)].rect;
    EXPECT_GE(box.rect.x + 0.01f, frame.x);
    EXPECT_GE(box.rect.y, frame.y);
    EXPECT_LE(box.rect.right(), frame.right() + 0.01f);
    EXPECT_LE(box.rect.bottom(), frame.bottom());
  }
}

TEST(Scene, closedBoxesDoNotOverlap) {
  const Net net;
  Shaper shaper(net.sharedTree());
  for (const auto& folds : {onlyRoot(*shaper.tree()), everything(*shaper.tree())}) {
    const auto scene = makeScene(shaper, folds);
    for (std::size_t i = 0; i < scene.boxes.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        EXPECT_FALSE(!scene.boxes[i].open && !scene.boxes[k].open && overlap(scene.boxes[i].rect, scene.boxes[k].rect))
            << i << " and " << k;
  }
}

TEST(Scene, openingAGroupLaysOutNothingElse) {
  Ladder m;
  auto x = m.b.input("x", {4});
  for (const char* module : {"a", "b", "c"}) {
    x = m.forward("aten.sin.default", {x}, module);
    x = m.forward(module == std::string("b") ? "aten.exp.default" : "aten.cos.default", {x}, module);
  }
  Shaper shaper(m.sharedTree());
  auto folds = onlyRoot(*shaper.tree());
  const auto before = makeScene(shaper, folds);
  EXPECT_EQ(shaper.layerings(), 1u);
  const auto b = shaper.tree()->next(1), c = shaper.tree()->next(b);
  folds[static_cast<std::size_t>(b)] = true;
  const auto after = makeScene(shaper, folds);
  EXPECT_EQ(shaper.layerings(), 2u) << "the root keeps its rows and order";
  const auto place = [&](const Scene& scene, std::int32_t node) {
    return scene.boxes[static_cast<std::size_t>(scene.box(node, Lane::forward))].rect;
  };
  EXPECT_FLOAT_EQ(place(after, 1).y, place(before, 1).y);
  EXPECT_GT(place(after, c).y, place(before, c).y) << "what is below moves down";
}

TEST(Scene, equalGroupsAreLaidOutOnce) {
  const Net net(40);
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, everything(*shaper.tree()));
  EXPECT_EQ(scene.boxes.size(), 2u * (1 + 40 + 80));
  EXPECT_LE(shaper.layerings(), 6u) << "root, run, and the first, inner and last layer";
}

TEST(Scene, edgesBeginAndEndAtTheirBoxes) {
  const Net net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, everything(*shaper.tree()));
  int checked = 0;
  for (const auto& edge : scene.edges) {
    const auto path = scene.path(edge);
    const auto touches = [&](std::int32_t box, Point p) {
      const auto& r = scene.boxes[static_cast<std::size_t>(box)].rect;
      return p.x >= r.x - 0.1f && p.x <= r.right() + 0.1f && p.y >= r.y - 0.1f && p.y <= r.bottom() + 0.1f;
    };
    EXPECT_TRUE(edge.from < 0 || touches(edge.from, path.front())) << name(edge.kind);
    EXPECT_TRUE(edge.to < 0 || touches(edge.to, path.back())) << name(edge.kind);
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(Scene, gradientsPointUpwardsAndDataDown) {
  const Net net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, everything(*shaper.tree()));
  for (const auto& edge : scene.edges) {
    const auto path = scene.path(edge);
    if (edge.kind == EdgeKind::data) {
      EXPECT_LT(path.front().y, path.back().y);
      EXPECT_FALSE(edge.arrowAtBegin);
    }
    if (edge.kind != EdgeKind::gradient || edge.from < 0 || edge.to < 0) continue;
    const auto head = edge.arrowAtBegin ? path.front() : path.back(),
               tail = edge.arrowAtBegin ? path.back() : path.front();
    EXPECT_TRUE((!edge.arrowAtBegin && !edge.arrowAtEnd) || head.y < tail.y);
  }
}

TEST(Scene, savedTensorsCrossInTheirRow) {
  const Net net;
  Shaper shaper(net.sharedTree());
  const auto scene = makeScene(shaper, everything(*shaper.tree()));
  int saved = 0;
  for (const auto& edge : scene.edges) {
    if (edge.kind != EdgeKind::saved) continue;
    EXPECT_FLOAT_EQ(scene.path(edge).front().y, scene.path(edge).back().y);
    EXPECT_EQ(edge.bytes, 16);
    ++saved;
  }
  EXPECT_EQ(saved, 12);
}

TEST(Scene, reachIsOpExactAcrossFrames) {
  Ladder m;
  auto x = m.b.input("x", {4});
  const auto a = m.forward("aten.sin.default", {x}, "one"), b = m.forward("aten.cos.default", {x}, "one");
  m.forward("aten.exp.default", {a}, "two");
  m.forward("aten.tanh.default", {b}, "two");
  const auto tree = m.sharedTree();
  Shaper shaper(tree);
  const auto scene = makeScene(shaper, everything(*tree));
  const auto boxOf = [&](std::size_t op) { return scene.shownBox(tree->nodeOf(m.b.trace.ops[op]), Lane::forward); };
  const auto reach = reachOf(scene, boxOf(0));
  ASSERT_EQ(reach.boxes.size(), 1u);
  EXPECT_EQ(reach.boxes[0], boxOf(2)) << "sin feeds exp, not tanh";
  EXPECT_EQ(reach.edges.size(), 3u) << "out of one, from one to two, into two";
}

TEST(Scene, revealOpensTheWay) {
  const Net net;
  const auto tree = net.sharedTree();
  auto folds = onlyRoot(*tree);
  const auto node = tree->nodeOf(net.b.trace.ops[5]);
  EXPECT_TRUE(reveal(*tree, folds, node));
  Shaper shaper(tree);
  const auto scene = makeScene(shaper, folds);
  const auto shown = scene.shownBox(node, Lane::forward);
  EXPECT_EQ(scene.boxes[static_cast<std::size_t>(shown)].node, tree->operationOf(node));
  EXPECT_FALSE(reveal(*tree, folds, node));
}

TEST(Scene, opensWithAFewBoxes) {
  const Net net(500);
  const auto tree = net.sharedTree();
  Shaper shaper(tree);
  const auto scene = makeScene(shaper, openingFolds(*tree));
  EXPECT_LT(scene.boxes.size(), 130u);
  EXPECT_GE(scene.boxes.size(), 2u);
}

TEST(Scene, anEmptyTraceHasAnEmptyScene) {
  Ladder m;
  Shaper shaper(m.sharedTree());
  EXPECT_TRUE(makeScene(shaper, openingFolds(*shaper.tree())).boxes.empty());
}

}  // namespace
}  // namespace retrograd::layout


#include <gtest/gtest.h>

#include "core/layout/scene.h"
#include "tests/core/layout/ladder.h"

namespace retrograd::layout {
namespace {

/// Labels of what is open, but for the root.
std::vector<std::string> opened(const GraphTree& tree, const Folds& folds) {
  std::vector<std::string> labels;
  for (std::int32_t i = 1; i < tree.size(); ++i)
    if (folds[static_cast<std::size_t>(i)]) labels.emplace_back(tree.label(i));
  return labels;
}

test::Ladder model() {
  test::Ladder ladder;
  auto x = ladder.b.input("x", {4});
  for (const char* module : {"a.one", "a.two", "ab", "c.d.e"})
    for (const char* op : {"aten.sin.default", "aten.cos.default"}) x = ladder.forward(op, {x}, module);
  ladder.backward();
  return ladder;
}

}  // namespace

TEST(OpenModule, OpensWhatHoldsTheModuleAloneAndWhatIsAroundIt) {
  const auto ladder = model();
  const auto tree = ladder.tree();
  const Folds closed(static_cast<std::size_t>(tree.size()), false);
  auto folds = closed;
  EXPECT_TRUE(openModule(tree, folds, "a.two"));
  EXPECT_EQ(opened(tree, folds), (std::vector<std::string>{"a", "two"}));
  folds = closed;
  EXPECT_TRUE(openModule(tree, folds, "a"));
  EXPECT_EQ(opened(tree, folds), std::vector<std::string>{"a"})
      << "'ab' is another module, and what is in 'a' stays closed";
  folds = closed;
  EXPECT_TRUE(openModule(tree, folds, "c.d"));
  EXPECT_EQ(opened(tree, folds), std::vector<std::string>{"c.d.e"}) << "modules of one module are one box";
}

TEST(OpenModule, AModuleThatIsNotThereChangesNothing) {
  const auto ladder = model();
  const auto tree = ladder.tree();
  const Folds closed(static_cast<std::size_t>(tree.size()), false);
  for (const char* path : {"", "b", "a.three", "a.one.x", "no.such"}) {
    auto folds = closed;
    EXPECT_FALSE(openModule(tree, folds, path)) << path;
    EXPECT_EQ(folds, closed);
  }
}

TEST(OpenModule, AllOpenIsWhatCanBeOpened) {
  const auto ladder = model();
  const auto tree = ladder.tree();
  const auto folds = allOpen(tree);
  for (std::int32_t i = 1; i < tree.size(); ++i) EXPECT_EQ(folds[static_cast<std::size_t>(i)], tree.canOpen(i));
  Shaper shaper(std::make_shared<GraphTree>(tree));
  const auto scene = makeScene(shaper, folds);
  for (const auto& box : scene.boxes) EXPECT_TRUE(box.open || !tree.canOpen(box.node));
}

}  // namespace retrograd::layout

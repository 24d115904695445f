// The ladder on real models: where every backward op stands, and how tangled the drawing is.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "core/debug/analysis.h"
#include "core/layout/dot_client.h"
#include "core/layout/scene.h"
#include "tests/support/source_path.h"

namespace retrograd::layout {
namespace {

struct Drawn {
  std::shared_ptr<const Analysis> analysis;
  std::shared_ptr<const GraphTree> tree;
  Scene scene;
  LayerQuality quality;
};

/// The joint with every group open.
Drawn draw(const std::string& path) {
  Drawn drawn;
  drawn.analysis = openModel(path);
  drawn.tree = std::make_shared<const GraphTree>(buildTree(*drawn.analysis->document, drawn.analysis->joint, &drawn.analysis->computation()));
  Folds open(static_cast<std::size_t>(drawn.tree->size()), false);
  for (std::int32_t i = 0; i < drawn.tree->size(); ++i) open[static_cast<std::size_t>(i)] = drawn.tree->canOpen(i);
  DotClient dot;
  Shaper shaper(drawn.tree, [&](const LayerGraph& graph, const Progress& progress) { return bestLayering(dot, graph, progress); });
  drawn.scene = makeScene(shaper, open);
  drawn.quality = shaper.quality();
  return drawn;
}

const Rect& rectOf(const Drawn& drawn, std::int32_t node, Lane lane) {
  return drawn.scene.boxes.at(static_cast<std::size_t>(drawn.scene.shownBox(node, lane))).rect;
}

/// From top to bottom what a rung takes on the canvas; its frame has the same height in both lanes.
std::pair<float, float> rowOf(const Drawn& drawn, std::int32_t operation) {
  for (auto lane : {Lane::forward, Lane::backward})
    if (const auto box = drawn.scene.box(operation, lane); box >= 0) {
      const auto& rect = drawn.scene.boxes[static_cast<std::size_t>(box)].rect;
      return {rect.y, rect.bottom()};
    }
  return {0, 0};
}

void everyBackwardOpStandsInItsRow(const std::string& path, std::size_t atLeast) {
  const auto drawn = draw(path);
  const auto& document = *drawn.analysis->document;
  const auto& joint = drawn.analysis->joint;
  const auto inRow = [](const Rect& rect, std::pair<float, float> row) { return rect.y >= row.first && rect.bottom() <= row.second; };
  std::size_t checked = 0;
  for (auto i = joint.forwardCount; i < joint.ops.size(); ++i) {
    const auto node = drawn.tree->nodeOf(joint.ops[i]);
    ASSERT_GE(node, 0) << document.opName(joint.ops[i]) << " is not drawn";
    const auto row = rowOf(drawn, drawn.tree->operationOf(node));
    const auto& rect = rectOf(drawn, node, Lane::backward);
    EXPECT_TRUE(inRow(rect, row)) << document.opName(joint.ops[i]) << " at " << rect.y;
    EXPECT_GT(rect.x, drawn.scene.axis) << "on the right";
    bool any = false, beside = false;
    for (auto origin : drawn.analysis->links.derived(document.boundSymbol(joint.ops[i]).origin.op)) {
      const auto forward = drawn.tree->nodeOf(origin);
      if (forward < 0 || drawn.tree->node(forward).lane != Lane::forward) continue;
      any = true;
      beside = beside || inRow(rectOf(drawn, forward, Lane::forward), row);
    }
    EXPECT_EQ(any, beside) << document.opName(joint.ops[i]) << " does not stand in the row of its origin";
    checked += beside;
  }
  EXPECT_GE(checked, atLeast);
  std::cout << path << ": " << checked << " backward ops in the rows of their origins; " << drawn.quality.crossings << " crossings, " << drawn.quality.edges
            << " edges over " << drawn.quality.span << " rows\n";
  // What it is now, with some room: a layout that gets worse shows here.
  EXPECT_LE(static_cast<double>(drawn.quality.crossings), 0.05 * static_cast<double>(drawn.quality.edges) + 2);
  EXPECT_LE(static_cast<double>(drawn.quality.span), 3.0 * static_cast<double>(drawn.quality.edges));
}

const std::string cases = sourcePath("../shared/cases/models/");

TEST(LadderOfModels, sample) { everyBackwardOpStandsInItsRow(sourcePath("resources/samples/tiny_gpt.pt2"), 121); }

TEST(LadderOfModels, resnet18) {
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "the cases are not there";
  everyBackwardOpStandsInItsRow(cases + "resnet18_train/model.pt2", 77);
}

TEST(LadderOfModels, gpt2) {
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "the cases are not there";
  everyBackwardOpStandsInItsRow(cases + "gpt2/model.pt2", 187);
}

}  // namespace
}  // namespace retrograd::layout

// The ladder on real models: where every backward op stands, and how tangled the drawing is.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "core/debug/analysis.h"
#include "core/layout/dot_client.h"
#include "core/layout/scene.h"

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

const Rect* rectOf(const Drawn& drawn, BoundSymbolId op) {
  const auto node = drawn.tree->nodeOf(op);
  const auto box = node < 0 ? -1 : drawn.scene.shownBox(node, drawn.tree->node(node).lane);
  return box < 0 ? nullptr : &drawn.scene.boxes[static_cast<std::size_t>(box)].rect;
}

/// The rows that the forward ops of a computation op take, their operation's frame included: from top to bottom.
std::vector<std::pair<float, float>> rowsOf(const Drawn& drawn, BoundSymbolId operation) {
  std::vector<std::pair<float, float>> rows;
  for (auto op : drawn.analysis->links.derived(operation)) {
    const auto node = drawn.tree->nodeOf(op);
    if (node < 0 || drawn.tree->node(node).lane != Lane::forward) continue;
    const auto& rect = drawn.scene.boxes[static_cast<std::size_t>(drawn.scene.box(drawn.tree->operationOf(node), Lane::forward))].rect;
    rows.emplace_back(rect.y, rect.bottom());
  }
  return rows;
}

void everyBackwardOpStandsInItsRow(const std::string& path, std::size_t atLeast) {
  const auto drawn = draw(path);
  std::size_t checked = 0;
  const auto& joint = drawn.analysis->joint;
  for (auto i = joint.forwardCount; i < joint.ops.size(); ++i) {
    const auto op = joint.ops[i];
    const auto* rect = rectOf(drawn, op);
    ASSERT_TRUE(rect) << drawn.analysis->document->opName(op) << " is not drawn";
    EXPECT_GT(rect->x, drawn.scene.axis) << "on the right";
    const auto rows = rowsOf(drawn, drawn.analysis->document->boundSymbol(op).origin.op);
    if (rows.empty()) continue;   // a parameter's sum: it comes from no op
    const auto middle = rect->centre().y;
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](auto row) { return row.first <= middle && middle <= row.second; }))
        << drawn.analysis->document->opName(op) << " at " << middle;
    ++checked;
  }
  EXPECT_GE(checked, atLeast);
  std::cout << path << ": " << checked << " backward ops in the rows of their origins; " << drawn.quality.crossings << " crossings, " << drawn.quality.edges
            << " edges over " << drawn.quality.span << " rows\n";
  // What it is now, with some room: a layout that gets worse shows here.
  EXPECT_LE(static_cast<double>(drawn.quality.crossings), 0.05 * static_cast<double>(drawn.quality.edges) + 2);
  EXPECT_LE(static_cast<double>(drawn.quality.span), 3.0 * static_cast<double>(drawn.quality.edges));
}

const std::string cases = RETROGRAD_SOURCE_DIR "/../shared/cases/models/";

TEST(LadderOfModels, sample) { everyBackwardOpStandsInItsRow(RETROGRAD_SOURCE_DIR "/resources/samples/tiny_gpt.pt2", 30); }

TEST(LadderOfModels, resnet18) {
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "the cases are not there";
  everyBackwardOpStandsInItsRow(cases + "resnet18_train/model.pt2", 80);
}

TEST(LadderOfModels, gpt2) {
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "the cases are not there";
  everyBackwardOpStandsInItsRow(cases + "gpt2/model.pt2", 150);
}

}  // namespace
}  // namespace retrograd::layout

// The ladder on real models: where every backward op is, and how tangled the drawing is.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/derivation/analysis.h"
#include "core/layout/dot_client.h"
#include "core/layout/layout_report.h"
#include "core/layout/scene.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::layout {
namespace {

struct Drawn {
  std::shared_ptr<const Analysis> analysis;
  std::shared_ptr<const GraphTree> tree;
  Scene scene;
};

/// The joint with every group open.
Drawn draw(const std::string& path) {
  Drawn drawn;
  drawn.analysis = openModel(path);
  drawn.tree = std::make_shared<const GraphTree>(
      buildTree(*drawn.analysis->document, drawn.analysis->joint, &drawn.analysis->computation()));
  Folds open(static_cast<std::size_t>(drawn.tree->size()), false);
  for (std::int32_t i = 0; i < drawn.tree->size(); ++i) open[static_cast<std::size_t>(i)] = drawn.tree->canOpen(i);
  DotClient dot;
  Shaper shaper(drawn.tree,
                [&](const LayerGraph& graph, const Progress& progress) { return bestLayering(dot, graph, progress); });
  drawn.scene = makeScene(shaper, open);
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
  const auto inRow = [](const Rect& rect, std::pair<float, float> row) {
    return rect.y >= row.first && rect.bottom() <= row.second;
  };
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

/// How tangled the joint is, with every group open. A figure that grows fails: the layout has become worse, or the
/// model's joint is another one. To renew a row with what `retrograd bench --layout` says, look at the graph before and
/// after.
struct Tangle {
  const char* model;
  std::int64_t crossings, savedCrossings, rows;
  double flowLength, longestFlow, savedLength;  // pixels
};
constexpr Tangle tangles[] = {
    {"resources/samples/mlp.pt2", 0, 0, 42, 2'857, 234, 3'176},
    {"resources/samples/tiny_gpt.pt2", 0, 0, 291, 43'195, 7'799, 25'260},
    {"../shared/cases/models/resnet18_train/model.pt2", 0, 0, 336, 56'774, 1'326, 73'005},
    {"../shared/cases/models/gpt2/model.pt2", 10, 0, 605, 127'240, 15'199, 64'595},
};

TEST(LadderOfModels, isNotMoreTangledThanItWas) {
  for (const auto& was : tangles) {
    const auto path = sourcePath(was.model);
    if (!std::filesystem::exists(path)) continue;  // the cases are not in the repository
    SCOPED_TRACE(was.model);
    const auto analysis = openModel(path);
    const auto now = reportLayout(*analysis->document, analysis->joint, &analysis->computation(), true);
    EXPECT_LE(now.crossings, was.crossings);
    EXPECT_LE(now.savedCrossings, was.savedCrossings);
    EXPECT_LE(now.rows, was.rows);
    // Half a percent for the arithmetic of other machines.
    EXPECT_LE(now.flowLength, was.flowLength * 1.005);
    EXPECT_LE(now.longestFlow, was.longestFlow * 1.005 + 1);
    EXPECT_LE(now.savedLength, was.savedLength * 1.005);
  }
}

}  // namespace
}  // namespace retrograd::layout

// Stages as a rank computes them: microbatches, the two halves of a backward, what goes over a border and what has to be summed.
#include "core/pipeline/rank_stages.h"

#include <gtest/gtest.h>

#include "core/checking/compare.h"
#include "core/pipeline/open_pipeline.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

Pipeline derived(const std::string& model) {
  auto cut = openCut(sourcePath("tests/data/pipeline/") + model + "/model.pt2", {}, {}, [](const ModelFile&) { return AnalysisOptions(); }, true);
  return derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split));
}

/// All forwards of a microbatch, then all backwards; what each stage sends lies by source and destination until it is read.
TensorMap gradientsOf(const Pipeline& pipeline, std::int32_t microbatches, bool inHalves) {
  RankStages runner(pipeline);
  const auto count = static_cast<std::int32_t>(pipeline.stages.size());
  for (std::int32_t m = 0; m < microbatches; ++m) {
    std::map<std::int32_t, StageValues> arriving, returning;
    for (std::int32_t s = 0; s < count; ++s)
      for (auto& [to, values] : runner.forward(s, m, arriving[s])) arriving[to][s] = values;
    for (std::int32_t s = count; s-- > 0;)
      for (auto& [to, values] : inHalves ? runner.backwardInput(s, m, returning[s]) : runner.backward(s, m, returning[s])) returning[to][s] = values;
    for (std::int32_t s = 0; inHalves && s < count; ++s) runner.backwardWeight(s, m);
  }
  return runner.parameterGradients();
}

void expectEqual(const TensorMap& found, const TensorMap& expected) {
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_FALSE(expected.empty());
  Comparison comparison;
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    comparison.add(name, found.at(name), tensor);
  }
  EXPECT_LE(comparison.error(), 1e-6) << comparison.worst() << comparison.failure();
}

// Holds P53, P62. Gradients add up over microbatches, as running twice does in eager; nothing is divided.
TEST(RankStages, P53_P62_GradientsAddUpOverMicrobatches) {
  for (const auto* model : {"mlp_3st", "shared_2st"}) {
    const auto pipeline = derived(model);
    const auto expected = unsplitGradients(*pipeline.whole, 3);
    expectEqual(gradientsOf(pipeline, 3, false), expected);
    const auto once = unsplitGradients(*pipeline.whole, 1);
    EXPECT_FALSE(identical(once.begin()->second, expected.begin()->second));
  }
}

// Holds P61. The gradients of the inputs first and those of the parameters later are together the whole backward.
TEST(RankStages, P61_TheHalvesOfABackwardGiveAllOfIt) {
  for (const auto* model : {"mlp_3st", "shared_2st"}) {
    const auto pipeline = derived(model);
    expectEqual(gradientsOf(pipeline, 2, true), unsplitGradients(*pipeline.whole, 2));
  }
}

// Holds P38. What several stages have a copy of has to be summed over ranks, by the first of its names.
TEST(RankStages, P38_SharedParametersAreSummedOverRanks) {
  EXPECT_TRUE(gradientsToSum(derived("mlp_3st")).empty());
  const auto pipeline = derived("shared_2st");
  const auto sums = gradientsToSum(pipeline);
  EXPECT_FALSE(sums.empty());
  RankStages runner(pipeline);
  for (const auto& [name, meta] : sums) EXPECT_TRUE(unsplitGradients(*pipeline.whole, 1).contains(name)) << name;
}

TEST(RankStages, MicrobatchesDifferAndKeepTheirElements) {
  const auto pipeline = derived("mlp_3st");
  const auto first = microbatchInputs(*pipeline.whole, 0), second = microbatchInputs(*pipeline.whole, 1);
  ASSERT_FALSE(first.empty());
  const auto& [name, tensor] = *first.begin();
  EXPECT_TRUE(identical(tensor, pipeline.whole->inputs.at(name)));
  auto a = asDoubles(tensor), b = asDoubles(second.at(name));
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(b[(i + 1) % a.size()], a[i]) << i;
}

}  // namespace
}  // namespace retrograd

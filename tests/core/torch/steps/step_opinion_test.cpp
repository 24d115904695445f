#include "core/torch/steps/step_opinion.h"

#include <gtest/gtest.h>

#include "core/formats/recording/recording.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

std::shared_ptr<const Analysis> recordedStepToJudge() { return openModel(sourcePath("tests/data/recordings/step")); }

/// The recorded step has dropout, a checkpointed block, and a hook that doubles the gradient of last.weight.
TEST(StepOpinion, C12_EachGradientIsDerivedAgainAndAHookIsACut) {
  const auto analysis = recordedStepToJudge();
  const auto step = replayWithOpinion(analysis);
  EXPECT_EQ(step.replay.stopped, "");
  EXPECT_GT(step.opinion.compared, 20u);
  EXPECT_EQ(step.opinion.notCompared, 0u);
  ASSERT_EQ(step.opinion.cuts.size(), 1u);
  const auto& cut = step.opinion.cuts[0];
  EXPECT_EQ(cut.kind, GradientCut::Kind::hook);
  EXPECT_EQ(cut.name, "<lambda>");
  ASSERT_TRUE(cut.factor);
  EXPECT_NEAR(*cut.factor, 2, 1e-6);
  EXPECT_EQ(cut.parameters, std::vector<std::string>{"last.weight"});
  EXPECT_TRUE(describe(cut).starts_with("hook `<lambda>`: 2 times the derivative; train.py:")) << describe(cut);
}

TEST(StepOpinion, C14_ACutIsAFaultWhereItIsAskedFor) {
  const auto analysis = recordedStepToJudge();
  const auto& recording = *analysis->file.recording;
  GradientCut cut{.kind = GradientCut::Kind::hook, .name = "halve", .line = "train.py:12 in halve", .factor = 0.5};
  EXPECT_EQ(faultOf(cut, recording, false, nullptr), "");
  EXPECT_NE(faultOf(cut, recording, true, nullptr), "");
  StepOpinion good;
  EXPECT_NE(faultOf(cut, recording, false, &good), "");
  good.cuts = {cut};
  good.cuts[0].line = "train.py:30 in halve";  // lines move
  EXPECT_EQ(faultOf(cut, recording, false, &good), "");
  good.cuts[0].factor = 0.25;
  EXPECT_NE(faultOf(cut, recording, false, &good), "");
  cut.nonFinite = true;
  EXPECT_NE(faultOf(cut, recording, false, nullptr), "");
  EXPECT_NE(faultOf({.kind = GradientCut::Kind::builtin}, recording, false, nullptr), "");
}

}  // namespace
}  // namespace retrograd

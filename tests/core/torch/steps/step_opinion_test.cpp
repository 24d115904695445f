#include "core/torch/steps/against.h"
#include "core/torch/steps/step_report.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  EXPECT_TRUE(step.opinion.notCompared.empty());
  ASSERT_EQ(step.opinion.cuts.size(), 1u);
  const auto& cut = step.opinion.cuts[0];
  EXPECT_EQ(cut.kind, GradientCut::Kind::hook);
  EXPECT_EQ(cut.name, "<lambda>");
  ASSERT_TRUE(cut.factor);
  EXPECT_NEAR(*cut.factor, 2, 1e-6);
  EXPECT_EQ(cut.parameters, std::vector<std::string>{"last.weight"});
  const auto text = textOf(claimOf(cut, *analysis->file.recording));
  EXPECT_TRUE(text.starts_with("hook `<lambda>`: 2 times the derivative; train.py:")) << text;
}

TEST(StepReport, C14_ACutIsAFaultWhereItIsAskedFor) {
  const auto analysis = recordedStepToJudge();
  const auto& recording = *analysis->file.recording;
  GradientCut cut{.kind = GradientCut::Kind::hook, .name = "halve", .line = "train.py:12 in halve", .factor = 0.5};
  const auto besides = [&](const std::vector<Claim>& right) {
    auto claim = claimOf(cut, recording);
    weighAgainst(claim, right);
    return claim.severity;
  };
  EXPECT_EQ(claimOf(cut, recording).severity, Severity::suspicion);
  EXPECT_EQ(besides({}), Severity::fault);
  auto good = cut;
  good.line = "train.py:30 in halve";  // lines move
  EXPECT_EQ(besides({claimOf(good, recording)}), Severity::note);
  good.factor = 0.25;
  EXPECT_EQ(besides({claimOf(good, recording)}), Severity::fault);
  cut.nonFinite = true;
  EXPECT_EQ(claimOf(cut, recording).severity, Severity::fault);
  cut = {.kind = GradientCut::Kind::builtin};
  EXPECT_EQ(claimOf(cut, recording).severity, Severity::fault);
}

TEST(StepReport, K1_APassSaysHowManyGradientsOfParametersWereJudged) {
  const auto report = reportOf(runStep(recordedStepToJudge()));
  EXPECT_EQ(report.judged, 6u);
  EXPECT_EQ(report.due, 6u);
  EXPECT_EQ(coverageText(report), "6 gradients that an optimizer read");
  EXPECT_EQ(decide(report).verdict, Verdict::pass);
  EXPECT_EQ(decide(report, true).verdict, Verdict::fail) << "the hook is a cut";
  EXPECT_TRUE(std::ranges::any_of(
      report.notes, [](const std::string& note) { return note.find(" differ; not compared: ") != std::string::npos; }));
}

}  // namespace
}  // namespace retrograd

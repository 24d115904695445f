#include "core/torch/steps/optimizer_updates.h"

#include <gtest/gtest.h>

#include "core/torch/steps/judge_step.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

/// Two steps of AdamW with clipping; the second begins with moments.
TEST(OptimizerUpdates, C13_ARowForEachParameterOfEachUpdate) {
  const auto analysis = openModel(sourcePath("tests/data/recordings/step"));
  const auto updates = optimizerUpdates(analysis);
  EXPECT_EQ(updates.incomplete, "");
  EXPECT_FALSE(updates.firstBad);
  ASSERT_EQ(updates.steps.size(), 2u);
  for (const auto& step : updates.steps) {
    EXPECT_FALSE(step.wasSkipped);
    ASSERT_EQ(step.parameters.size(), 6u);
    for (const auto& update : step.parameters) {
      EXPECT_TRUE(update.gradient && update.read && update.weight && update.update) << update.parameter;
      ASSERT_TRUE(update.clipFactor() && update.ratio()) << update.parameter;
      EXPECT_NEAR(*update.clipFactor(), *step.parameters[0].clipFactor(), 1e-5) << "one factor for all";
      EXPECT_LE(*update.clipFactor(), 1 + 1e-6);
      EXPECT_EQ(update.states.size(), 3u);
    }
  }
  EXPECT_EQ(titleOf(updates, updates.steps[1]), "step 1");
  EXPECT_NE(textOf(updates, *analysis->document, "last.bias").find("last.bias"), std::string::npos);
  EXPECT_EQ(textOf(updates, *analysis->document, "last.bias").find("first.bias"), std::string::npos);
}

TEST(OptimizerUpdates, C13_TheFirstUpdateThatIsNotFiniteLeadsToTheOpThatMadeTheNan) {
  const auto analysis = openModel(sourcePath("resources/samples/recorded"));
  const auto updates = optimizerUpdates(analysis);
  ASSERT_TRUE(updates.firstBad);
  const auto text = describe(updates, *analysis->document, *updates.firstBad);
  EXPECT_TRUE(text.starts_with("the update of first.weight in step 0 is not finite: ")) << text;
  EXPECT_NE(text.find("train_recorded.py:15"), std::string::npos) << text;
}

TEST(OptimizerUpdates, C13_TheWindowHasFindingsAndNumbersOfTheLastUpdate) {
  const auto findings = judgeStep(openModel(sourcePath("resources/samples/recorded"))).claims;
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].severity, Severity::fault);
  EXPECT_EQ(findings[0].sentence.find("the update of first.weight in step 0 is not finite: "), 0U);
  EXPECT_EQ(findings[0].command, "source");
  const auto analysis = openModel(sourcePath("tests/data/recordings/step"));
  const auto cuts = judgeStep(analysis).claims;
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].severity, Severity::suspicion);
  EXPECT_EQ(cuts[0].sentence, "hook `<lambda>`: 2 times the derivative");
  EXPECT_EQ(cuts[0].parameters, std::vector<std::string>{"last.weight"});
  const auto last = lastUpdates(analysis);
  ASSERT_EQ(last.size(), 6u);
  EXPECT_NEAR(last.at("last.bias").clipFactor.value_or(0), 0.8695, 1e-3);
}

TEST(OptimizerUpdates, C13_AModelHasNone) {
  EXPECT_THROW(optimizerUpdates(openModel(sourcePath("tests/data/models/mlp/model.pt2"))), Error);
}

}  // namespace
}  // namespace retrograd

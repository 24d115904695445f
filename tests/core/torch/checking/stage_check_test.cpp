#include "core/torch/checking/stage_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/torch/judging/compare.h"
#include "core/torch/stages/open_pipeline.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

CutModel cutModel() {
  return openCut(
      sourcePath("tests/data/pipeline/mlp_3st/model.pt2"), {}, {}, [](const ModelFile&) { return DerivationRequest(); },
      true);
}

const Claim& row(const Report& check, const std::string& name) {
  const auto* claim = test::findClaim(check, Producer::stages, name);
  return claim ? *claim : throw std::runtime_error("no claim on " + name);
}
const Measure& measure(const Report& check, const std::string& parameter) {
  return *row(check, "grad.p." + parameter).measure;
}

/// The tensor with `by` added to its first element.
TensorData changed(const TensorData& tensor, float by) {
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.data, tensor.data + tensor.bytes);
  float first = 0;
  auto* at = bytes->data() + static_cast<std::size_t>(tensor.meta.offset) * sizeof first;
  std::memcpy(&first, at, sizeof first);
  first += by;
  std::memcpy(at, &first, sizeof first);
  return {tensor.meta, bytes->data(), bytes->size(), bytes};
}

/// Stages derived and run in sequence give the gradients of the model in one piece.
TEST(StageCheck, StagesGiveWhatTheModelGives) {
  const auto cut = cutModel();
  ASSERT_EQ(cut.split.stages.size(), 3u);
  const auto check = checkStages(cut.whole, cut.split);
  EXPECT_EQ(test::verdictOf(check), Verdict::pass);
  std::size_t parameters = 0;
  for (const auto& input : cut.whole->computation().inputs) {
    if (input.kind != InputKind::parameter) continue;
    ++parameters;
    EXPECT_EQ(row(check, "grad.p." + input.target).kind, parameterGradient);
    EXPECT_EQ(row(check, "grad.p." + input.target).value, input.value);
  }
  EXPECT_GT(parameters, 3u);
  EXPECT_EQ(row(check, "out.0").kind, stageOutput);
}

TEST(StageCheck, ShowsHowFarGradientsAreApart) {
  const auto cut = cutModel();
  const auto expected = runJoint(*cut.whole);
  std::vector<std::string> names;
  std::vector<double> most;
  for (const auto& [name, tensor] : expected.gradients)
    if (name.starts_with("p.")) {
      names.push_back(name.substr(2));
      most.push_back(difference(tensor, tensor).scale);
    }
  ASSERT_GE(names.size(), 4u);
  auto stages = expected;
  auto& far = stages.gradients.at("p." + names[0]);
  far = changed(far, static_cast<float>(most[0]));
  auto& near = stages.gradients.at("p." + names[1]);
  near = changed(near, static_cast<float>(most[1] * 2e-7));
  stages.gradients.erase("p." + names[2]);
  const auto check = compareStages(cut.whole, stages, expected);
  EXPECT_EQ(test::verdictOf(check), Verdict::fail);
  EXPECT_EQ(std::ranges::count(check.claims, Severity::fault, &Claim::severity), 2);
  EXPECT_EQ(check.details.at("exact"), static_cast<double>(check.claims.size() - 3));
  EXPECT_FALSE(measure(check, names[0]).good());
  EXPECT_NEAR(measure(check, names[0]).deviation, most[0], most[0] * 1e-5);
  EXPECT_TRUE(measure(check, names[1]).good() && !measure(check, names[1]).isExact());
  EXPECT_NEAR(measure(check, names[1]).deviation, most[1] * 2e-7, most[1] * 1e-7);
  EXPECT_LT(measure(check, names[1]).tolerance, most[1] * 1e-5);
  // What is furthest off is the first.
  EXPECT_EQ(check.claims.front().subject, "grad.p." + names[2]);
  EXPECT_EQ(measure(check, names[2]).failure, "the stages give none");
  EXPECT_TRUE(std::isinf(measure(check, names[2]).deviation));
  EXPECT_TRUE(measure(check, names[3]).isExact());
  EXPECT_EQ(test::verdictOf(compareStages(cut.whole, expected, expected)), Verdict::pass);
}

TEST(StageCheck, IsCancelled) {
  const auto cut = cutModel();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(checkStages(cut.whole, cut.split, Progress(stop.get_token(), {})), Error);
}

}  // namespace
}  // namespace retrograd

#include "core/torch/checking/stage_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/torch/judging/compare.h"
#include "core/torch/stages/open_pipeline.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

CutModel cutModel() {
  return openCut(
      sourcePath("tests/data/pipeline/mlp_3st/model.pt2"), {}, {}, [](const ModelFile&) { return DerivationRequest(); },
      true);
}

const StageCheckRow& row(const StageCheck& check, const std::string& name) {
  for (const auto& found : check.rows)
    if (found.name == name) return found;
  throw std::runtime_error("no row " + name);
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
  EXPECT_TRUE(check.passed());
  std::size_t parameters = 0;
  for (const auto& input : cut.whole->computation().inputs) {
    if (input.kind != InputKind::parameter) continue;
    ++parameters;
    EXPECT_EQ(row(check, input.target).of, StageCheckRow::Of::parameter);
    EXPECT_EQ(row(check, input.target).value, input.value);
  }
  EXPECT_GT(parameters, 3u);
  EXPECT_EQ(row(check, "0").of, StageCheckRow::Of::output);
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
  EXPECT_FALSE(check.passed());
  EXPECT_EQ(check.count(StageVerdict::differs), 2u);
  EXPECT_EQ(check.count(StageVerdict::close), 1u);
  EXPECT_EQ(row(check, names[0]).verdict, StageVerdict::differs);
  EXPECT_NEAR(row(check, names[0]).difference, most[0], most[0] * 1e-5);
  EXPECT_GE(row(check, names[0]).relative, 0.99);
  EXPECT_EQ(row(check, names[1]).verdict, StageVerdict::close);
  EXPECT_NEAR(row(check, names[1]).difference, most[1] * 2e-7, most[1] * 1e-7);
  EXPECT_GT(row(check, names[1]).tolerance, row(check, names[1]).difference);
  EXPECT_LT(row(check, names[1]).tolerance, most[1] * 1e-5);
  EXPECT_EQ(row(check, names[2]).verdict, StageVerdict::differs);
  EXPECT_EQ(row(check, names[2]).reason, "the stages give none");
  EXPECT_TRUE(std::isinf(row(check, names[2]).difference));
  EXPECT_EQ(row(check, names[3]).verdict, StageVerdict::equal);
  EXPECT_EQ(row(check, names[3]).difference, 0);
  EXPECT_TRUE(compareStages(cut.whole, expected, expected).passed());
}

TEST(StageCheck, IsCancelled) {
  const auto cut = cutModel();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(checkStages(cut.whole, cut.split, Progress(stop.get_token(), {})), Error);
}

}  // namespace
}  // namespace retrograd

#include "core/torch/reading/job_model.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/judging/judge.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/reading/read_model.h"
#include "tests/core/formats/cases.h"

namespace retrograd {
namespace {

std::shared_ptr<const Analysis> open(const std::string& log, const GivenData& data) {
  DerivationRequest request;
  request.data = data;
  return analyse(readModel(log, request), request);
}

// Holds J3, J10: inputs have the names of the Python program, and take weights and a batch by these.
TEST(JobModel, J10_ALogTakesWeightsAndABatchAsAModelDoes) {
  for (const auto* job : {"gpt", "convolution", "gpt_dynamic", "gpt_checkpoint", "gpt_torch260"}) {
    const auto folder = (test::cases() / "jobs" / job).string();
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
    GivenData data;
    data.weights = folder + "/model.safetensors";
    data.batch = folder + "/batch.safetensors";
    const auto analysis = open(folder + "/trace", data);
    ASSERT_TRUE(analysis->derived()) << job;
    auto run = namedResults(*analysis, runJoint(*analysis));
    const auto reference = readSafetensors(folder + "/ref.safetensors").tensors;
    Judge judge(analysis);
    std::size_t compared = 0;
    for (const auto& [name, expected] : reference) {
      const auto ours = name == "loss"              ? "out.0"
                        : name.starts_with("grad.") ? "grad.p." + name.substr(5)
                                                    : std::string();
      if (ours.empty()) continue;
      ASSERT_TRUE(run.contains(ours)) << job << ": " << ours;
      const auto verdict = judge.compare(ours, run.at(ours), expected);
      EXPECT_TRUE(verdict.good()) << job << ": " << ours << " is off by " << verdict.deviation << ", tolerance "
                                  << verdict.tolerance;
      ++compared;
    }
    EXPECT_GT(compared, 4u) << job;
  }
}

TEST(JobModel, WithoutDataItIsDrawn) {
  const auto analysis = open(sourcePath("resources/samples/lost_precision/trace"), {});
  ASSERT_TRUE(analysis->derived());
  EXPECT_FALSE(namedResults(*analysis, runJoint(*analysis)).empty());
}

TEST(JobModel, OpsHaveTheLinesOfThePythonProgram) {
  const auto analysis = open(sourcePath("resources/samples/lost_precision/trace"), {});
  const auto& document = *analysis->document;
  std::size_t withLine = 0;
  for (auto op : analysis->computation().trace.ops)
    if (const auto source = document.boundSymbol(op).source;
        source && document.source(source).at(0).file.ends_with(".py"))
      ++withLine;
  EXPECT_EQ(withLine, analysis->computation().trace.ops.size());
}

TEST(JobModel, ACompileThatIsNotThereIsRefused) {
  GivenData data;
  data.compile = "7/7";
  EXPECT_THROW(open(sourcePath("resources/samples/lost_precision/trace"), data), Error);
  EXPECT_THROW(open(sourcePath("resources/samples/mlp.pt2"), data), Error);
}

}  // namespace
}  // namespace retrograd

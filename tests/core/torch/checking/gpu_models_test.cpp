// Models on a GPU; skipped where there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/torch/analysis/analyse.h"
#include "core/torch/checking/check.h"
#include "core/torch/checking/pipeline_check.h"
#include "core/torch/checking/rank_check.h"
#include "core/torch/checking/suite.h"
#include "core/torch/execution/device.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/session/session.h"
#include "core/torch/stages/rank_stages.h"
#include "tests/core/formats/cases.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"

namespace retrograd::test {
namespace {

const Device cuda{Device::Type::cuda, 0};

#define NEED_DEVICE() \
  if (const auto status = deviceStatus(cuda); !status.available) GTEST_SKIP() << status.reason

DerivationRequest onCuda() {
  DerivationRequest options;
  options.device = cuda;
  return options;
}

TEST(Gpu, modelsKeptWithTheTestsPassTheCheck) {
  NEED_DEVICE();
  for (auto one : findCases(data())) {
    one.options.device = cuda;
    const auto report = checkModel(one.model, one.options);
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << one.name << ": " << decide(report).reason;
  }
}

TEST(Gpu, stagesOnTheirOwnDevicesGiveWhatTheModelGives) {
  NEED_DEVICE();
  for (const auto* name : {"mlp", "multi_output", "batchnorm_train"}) {
    CutRequest request;
    request.stages = 2;
    request.balance = Balance::estimate;
    request.options.devices = {Device(), cuda};
    const auto report = checkPipeline((data() / name / "model.pt2").string(), request, {});
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << name << ": " << decide(report).reason;
  }
}

/// Stages on the GPU in one process. `linked`: what crosses stays in its memory.
void expectGradientsOfTheModelInOnePiece(const char* model, std::optional<Device> linked) {
  CutRequest request;
  request.stages = 3;
  request.balance = Balance::estimate;
  auto cut =
      openCut((data() / model / "model.pt2").string(), request, {}, [](const ModelFile&) { return onCuda(); }, true);
  const auto microbatches =
      rotatedMicrobatches(std::make_shared<const Pipeline>(derivePipeline(cut.model, cut.whole, cut.split)), 2);
  RankStages stages(microbatches, false, linked);
  for (std::int32_t m = 0; m < 2; ++m) {
    std::map<std::int32_t, StageValues> arriving, returning;
    for (std::int32_t s = 0; s < 3; ++s)
      for (auto& [to, values] : stages.forward(s, m, arriving[s])) {
        for (const auto& [name, tensor] : values)
          EXPECT_EQ(tensor.memory, name == "generator" ? Device() : linked.value_or(Device()));
        arriving[to][s] = values;
      }
    for (std::int32_t s = 3; s-- > 0;)
      for (auto& [to, values] : stages.backward(s, m, returning[s])) returning[to][s] = values;
  }
  RankResults results;
  for (const auto& [name, tensor] : stages.parameterGradients()) {
    EXPECT_EQ(tensor.memory, linked.value_or(Device()));
    results.gradients.emplace(name, hostTensor(tensor));
  }
  const auto verdict = checkRank(results, microbatches, {}, {});
  EXPECT_EQ(test::verdictOf(verdict), Verdict::pass) << test::textOf(verdict);
  EXPECT_GT(verdict.judged, 1u);
}

/// A model that draws in several stages, all of them on the GPU: the generator goes with what crosses.
TEST(Gpu, ranksDrawWhatTheModelInOnePieceDraws) {
  NEED_DEVICE();
  expectGradientsOfTheModelInOnePiece("dropout_train", std::nullopt);
}

TEST(Gpu, whatCrossesMayStayOnTheGpu) {
  NEED_DEVICE();
  for (const auto* model : {"mlp", "dropout_train", "batchnorm_train"})
    expectGradientsOfTheModelInOnePiece(model, cuda);
}

TEST(Gpu, aSessionRunsInBothDirections) {
  NEED_DEVICE();
  const auto path = (data() / "dropout_train/model.pt2").string();
  Session session(openModel(path, onCuda()));
  session.runTo(session.size());
  const auto first = session.results().at(0);
  ASSERT_TRUE(first);
  for (const auto& measure : session.measures()) EXPECT_GT(measure.seconds, 0);
  EXPECT_GT(peakDeviceMemory(cuda).allocated, 0);
  EXPECT_GE(peakDeviceMemory(cuda).reserved, peakDeviceMemory(cuda).allocated);
  session.runTo(0);
  session.runTo(session.size());
  const auto again = session.results().at(0);
  ASSERT_TRUE(again);
  EXPECT_EQ(std::vector(first->data, first->data + first->bytes),
            std::vector(again->data, again->data + again->bytes));  // the same draws
}

TEST(Gpu, StatisticsAreThoseOfTheCpu) {
  NEED_DEVICE();
  const auto path = (data() / "mlp/model.pt2").string();
  Session gpu(openModel(path, onCuda())), cpu(openModel(path));
  for (auto input : cpu.analysis().computation().trace.inputs) {
    if (!input || !cpu.state(input).present) continue;
    const auto a = gpu.statistics(input), b = cpu.statistics(input);
    EXPECT_EQ(a.elements, b.elements);
    EXPECT_EQ(a.min, b.min);
    EXPECT_EQ(a.max, b.max);
    EXPECT_EQ(a.zeros, b.zeros);
    EXPECT_NEAR(a.mean, b.mean, 1e-6 * b.standardDeviation + 1e-12 * b.norm);  // chunks are added up in float32
    EXPECT_NEAR(a.standardDeviation, b.standardDeviation, 1e-6 * b.standardDeviation);
    EXPECT_EQ(gpu.histogram(input, 16), cpu.histogram(input, 16));
    EXPECT_EQ(gpu.magnitudes(input), cpu.magnitudes(input));
  }
}

TEST(Gpu, runsOnBothDevicesAgree) {
  NEED_DEVICE();
  const auto path = (data() / "mlp/model.pt2").string();
  const auto comparison = compareRuns(*openModel(path), *openModel(path, onCuda()), 1e-4);
  EXPECT_FALSE(comparison.rows.empty());
  EXPECT_FALSE(comparison.firstDivergence);
}

/// Looks up rows that are not there; exits with 3 when that is reported, as it should be.
[[noreturn]] void failOnTheGpu() {
  ModelBuilder m;
  const auto weight = m.parameter("weight", {4, 2});
  const auto index = m.input("index", {3}, DType::i64);
  const auto rows = m.op("aten.embedding.default", {weight, m.op("aten.add.Scalar", {index, 1000})});
  m.output(m.op("aten.sin.default", {m.op("aten.cos.default", {rows})}));
  try {
    Session session(m.analyse(onCuda()));
    session.runTo(session.size());
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::_Exit(3);
  }
  std::_Exit(0);
}

// An index out of range ends the GPU's context, so this has a process of its own.
TEST(GpuDeathTest, aFailureIsReportedForTheOpThatCausedIt) {
  NEED_DEVICE();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(failOnTheGpu(), ::testing::ExitedWithCode(3), "aten.embedding.default");
}

}  // namespace
}  // namespace retrograd::test

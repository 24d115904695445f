#include "core/torch/experiments/what_if.h"

#include <gtest/gtest.h>

#include "core/formats/safetensors/safetensors.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/reading/session_file.h"
#include "tests/support/float_tensor.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

std::string path() { return sourcePath("tests/data/models/mlp/model.pt2"); }

std::string otherWeights() {
  const auto model = openModel(path());
  TensorMap weights;
  for (const auto& [name, tensor] : model->file.weights) {
    std::int64_t count = 1;
    for (auto size : tensor.meta.sizes) count *= size;
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(0.01F * static_cast<float>(i % 7));
    weights.emplace(name, floatTensor(tensor.meta.sizes, std::move(numbers)));
  }
  auto file = testing::TempDir() + "what_if.safetensors";
  writeSafetensors(file, weights);
  return file;
}

PartitionOptions recomputeAll() {
  PartitionOptions partition;
  partition.recompute = {"all"};
  return partition;
}

// A model under other weights, after Adopt: what is saved from it and compared with it has these weights.
TEST(WhatIf, KeepsTheGivenWeights) {
  DerivationRequest request;
  request.data.weights = otherWeights();
  const auto analysis = openModel(path(), request);
  const auto adopted = whatIf(*analysis, recomputeAll()).analysis;
  EXPECT_EQ(adopted->request.data.weights, request.data.weights);
  const auto session = testing::TempDir() + "adopted.retrograd";
  saveSession(*adopted, session);
  EXPECT_EQ(compareRuns(*analysis, *loadSession(session), 0).largest, 0);
  EXPECT_EQ(compareRuns(*adopted, *openCounterpart(*adopted, {}), 0).largest, 0);
}

TEST(WhatIf, KeepsThePrecision) {
  DerivationRequest request;
  request.precision = DType::bf16;
  const auto analysis = openModel(path(), request);
  const auto adopted = whatIf(*analysis, recomputeAll()).analysis;
  EXPECT_EQ(adopted->request.precision, DType::bf16);
  EXPECT_EQ(compareRuns(*adopted, *openCounterpart(*adopted, {}), 0).largest, 0);
}

TEST(WhatIf, ASecondDerivativeStaysOne) {
  DerivationRequest request;
  request.order = 2;
  const auto analysis = openModel(path(), request);
  const auto adopted = whatIf(*analysis, recomputeAll()).analysis;
  EXPECT_EQ(adopted->differentiated, analysis->differentiated);
  EXPECT_EQ(orderOf(*adopted), 2);
}

TEST(WhatIf, KeepsTheSessionAndItsMarks) {
  SaveSessionOptions options;
  options.marks.emplace()["breakpoints"] = "[]";
  const auto session = testing::TempDir() + "marked.retrograd";
  saveSession(*openModel(path()), session, options);
  const auto opened = loadSession(session);
  const auto adopted = whatIf(*opened, recomputeAll()).analysis;
  EXPECT_EQ(adopted->sessionPath, session);
  EXPECT_EQ(adopted->marks, opened->marks);
}

}  // namespace
}  // namespace retrograd::test

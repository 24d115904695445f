// From a bad number to where it came from, on models with a planted one.
#include "core/questions/nan_walk.h"

#include <gtest/gtest.h>

#include "core/torch/analysis/analyse.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/script/script.h"
#include "core/torch/session/record_run.h"
#include "tests/support/float_tensor.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

DerivationRequest withInput(const std::string& name, TensorData data) {
  DerivationRequest options;
  options.inputs[name] = std::move(data);
  return options;
}

std::string opOf(const Analysis& a, BoundSymbolId op) { return op ? a.document->opName(op) : "none"; }

// log(0) five layers up: -inf, which a subtraction further down turns to NaN.
TEST(NanWalk, LeadsToTheLogarithmOfZeroFiveLayersUp) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  auto h = m.op("aten.log.default", {x});
  const auto logOp = m.lastOp();
  for (int layer = 0; layer < 5; ++layer) h = m.op("aten.add.Tensor", {m.op("aten.mul.Tensor", {h, 0.5}), 1.0});
  h = m.op("aten.sub.Tensor", {h, h});
  const auto subOp = m.lastOp();
  m.output(m.op("aten.sum.default", {m.op("aten.sin.default", {h})}));
  const auto a = m.analyse(withInput("x", floatTensor({4}, {1, 0, 2, 3})));
  const auto record = recordRun(*a);
  const auto walk = walkToRoot(*a, record, a->joint.outputs[0]);
  EXPECT_EQ(walk.forward, logOp);
  EXPECT_EQ(opOf(*a, walk.root), "torch.ops.aten.log.default");
  EXPECT_EQ(OriginLinks::origin(*a->document, walk.nanFrom), subOp);
  EXPECT_EQ(walk.path.size(), 14u);  // sum, sin, sub, five times add and mul, log
  EXPECT_NE(walk.explanation.find("1 of 4 elements are 0"), std::string::npos) << walk.explanation;
  EXPECT_EQ(firstBadValue(*a, record), a->document->outputs(walk.root)[0]);
}

// The forward is finite; sqrt's derivative at zero is not, and meets a zero further up.
TEST(NanWalk, LeadsFromAGradientThroughTheBackwardToItsForwardOp) {
  ModelBuilder m;
  const auto x = m.input("x", {3});
  const auto root = m.op("aten.sqrt.default", {m.op("aten.mul.Tensor", {x, x})});
  const auto sqrtOp = m.lastOp();
  m.output(m.op("aten.sum.default", {root}));
  const auto a = m.analyse(withInput("x", floatTensor({3}, {1, 0, 2})));
  const auto record = recordRun(*a);
  EXPECT_FALSE(record.of(a->joint.outputs[0]).bad());
  const auto gradient = a->joint.outputs[1];
  ASSERT_TRUE(record.of(gradient).bad());
  const auto walk = walkToRoot(*a, record, gradient);
  EXPECT_EQ(walk.forward, sqrtOp);
  EXPECT_EQ(a->document->boundSymbol(walk.root).origin.role, Role::gradient);
  EXPECT_TRUE(walk.nanFrom);  // infinity times zero, in the derivative of the product or through the accumulation
  for (auto operand : walk.operands) EXPECT_FALSE(record.of(operand).bad());
}

TEST(NanWalk, OverflowInHalfPrecision) {
  ModelBuilder m;
  const auto x = m.input("x", {2}, DType::f16);
  const auto y = m.op("aten.mul.Tensor", {m.op("aten.mul.Tensor", {x, 300.0}), 300.0});
  m.output(m.op("aten.sum.default", {y}));
  DerivationRequest options;
  options.seed = 3;
  const auto a = m.analyse(options);
  const auto record = recordRun(*a);
  ASSERT_TRUE(record.of(a->joint.outputs[0]).bad());
  const auto walk = walkToRoot(*a, record, a->joint.outputs[0]);
  EXPECT_EQ(opOf(*a, walk.root), "torch.ops.aten.mul.Tensor");
  EXPECT_TRUE(walk.explanation.find("elements") != std::string::npos || !walk.operands.empty());
}

TEST(NanWalk, StartsFromASavedTensorThatWasReplaced) {
  ModelBuilder m;
  const auto x = m.input("x", {2});
  m.output(m.op("aten.sum.default", {m.op("aten.exp.default", {x})}));
  const auto a = m.analyse(withInput("x", floatTensor({2}, {1, 2})));
  ASSERT_EQ(a->backward.savedCount, 1u);
  const auto saved = a->backward.inputs[0];
  RecordOptions options;
  options.replaced[saved] = floatTensor({2}, {1, std::numeric_limits<float>::quiet_NaN()});
  const auto record = recordRun(*a, options);
  ASSERT_TRUE(record.of(a->joint.outputs[1]).bad());
  const auto walk = walkToRoot(*a, record, a->joint.outputs[1]);
  EXPECT_EQ(walk.path.back().value, saved);
  options.replaced[saved] = floatTensor({3}, {1, 2, 3});
  EXPECT_THROW(recordRun(*a, options), Error);
}

TEST(NanWalk, ABadInputIsItsOwnRootAndAFiniteValueHasNone) {
  ModelBuilder m;
  const auto x = m.input("x", {2});
  m.output(m.op("aten.exp.default", {x}));
  const auto a = m.analyse(withInput("x", floatTensor({2}, {1, std::numeric_limits<float>::infinity()})));
  const auto record = recordRun(*a);
  const auto walk = walkToRoot(*a, record, a->joint.outputs[0]);
  EXPECT_FALSE(walk.root);
  EXPECT_EQ(walk.path.back().value, x);
  EXPECT_THROW(walkToRoot(*a, record, a->joint.inputs[1]), Error);
}

// Each model names the op that is to blame "planted".
TEST(NanWalk, PlantedModelsLeadToTheirRootInOneCommand) {
  struct Case {
    const char *file, *command, *role;
  };
  for (const auto& [file, command, role] :
       {Case{"log_of_zero", "walk-nan loss", "forward"}, Case{"log_of_zero", "walk-nan", "forward"},
        Case{"log_of_zero", "walk-nan grad w", "gradient"}, Case{"zero_over_zero", "walk-nan", "gradient"},
        Case{"zero_over_zero", "walk-nan grad w", "gradient"}, Case{"half_overflow", "walk-nan", "forward"},
        Case{"half_overflow", "walk-nan loss", "forward"}}) {
    SCOPED_TRACE(std::string(file) + ": " + command);
    const auto analysis = openModel(sourcePath("tests/data/planted/") + file + ".txt");
    DebugScript script(analysis);
    const auto answer = script.run(command).json;
    ASSERT_TRUE(answer["bad"]);
    EXPECT_EQ(answer["root"]["role"], role);
    const auto& document = *analysis->document;
    const BoundSymbolId forward(answer["forward"]["id"].get<int>());
    EXPECT_EQ(document.displayName(document.outputs(forward)[0]), "planted");
  }
}

TEST(CompareRuns, FindsTheFirstDivergenceBetweenTwoPrecisions) {
  const auto path = sourcePath("tests/data/models/mlp/model.pt2");
  DerivationRequest inDouble;
  inDouble.precision = DType::f64;
  const auto single = openModel(path), wide = openModel(path, inDouble);
  const auto close = compareRuns(*single, *wide, 1e-3);
  EXPECT_EQ(close.rows.size(), single->joint.ops.size());
  EXPECT_TRUE(close.onlyInA.empty() && close.onlyInB.empty());
  EXPECT_FALSE(close.firstDivergence);
  EXPECT_GT(close.largest, 0);
  const auto strict = compareRuns(*single, *wide, 1e-12);
  ASSERT_TRUE(strict.firstDivergence);
  EXPECT_LE(strict.rows[*strict.firstDivergence].relative, 1e-3);
}

TEST(CompareRuns, MemoryThatNobodyWroteIsNotCompared) {
  ModelBuilder m;
  const auto x = m.input("x", {64, 64});
  const auto blank = m.op("aten.empty_like.default", {x});
  const auto blankOp = m.lastOp();
  m.output(m.op("aten.sin.default", {m.op("aten.where.self", {m.op("aten.ge.Scalar", {x, -1e30}), x, blank})}));
  const auto a = m.analyse();
  const auto comparison = compareRuns(*a, *a, 0);
  EXPECT_FALSE(comparison.firstDivergence);
  EXPECT_FALSE(comparison.rows.empty());
  for (const auto& row : comparison.rows) EXPECT_NE(OriginLinks::origin(*a->document, row.opA), blankOp);
}

TEST(CompareRuns, APlantedChangeIsWhereTheyDiverge) {
  const auto a = openModel(sourcePath("tests/data/models/mlp/model.pt2"));
  const auto third = a->document->outputs(a->joint.ops[2])[0];
  const auto& meta = a->document->meta(third);
  RecordOptions options;
  options.replaced[third] =
      floatTensor(meta.sizes, std::vector<float>(static_cast<std::size_t>(meta.elements()), 0.25f));
  const auto comparison = compareRuns(*a, *a, 0, options);
  ASSERT_TRUE(comparison.firstDivergence);
  EXPECT_EQ(comparison.rows[*comparison.firstDivergence].valueA, third);
  EXPECT_FALSE(compareRuns(*a, *a, 0).firstDivergence);
}

TEST(CompareRuns, PartitionsAlignByWhatTheOpsAre) {
  const auto path = sourcePath("tests/data/models/mlp/model.pt2");
  DerivationRequest again;
  again.partition.recompute = {"all"};
  const auto comparison = compareRuns(*openModel(path), *openModel(path, again), 0);
  EXPECT_FALSE(comparison.firstDivergence);
  EXPECT_TRUE(comparison.onlyInA.empty());
  EXPECT_FALSE(comparison.onlyInB.empty());  // what runs again
}

}  // namespace
}  // namespace retrograd::test

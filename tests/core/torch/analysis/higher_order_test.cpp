// Gradients of gradients: the transform applied to a joint or a backward trace.
#include "core/torch/analysis/higher_order.h"

#include <gtest/gtest.h>

#include "core/torch/analysis/analyse.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/compare.h"
#include "core/trace/verifier.h"
#include "tests/support/comparison.h"
#include "tests/support/model_builder.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

std::shared_ptr<const Analysis> twice(ModelBuilder& m, TraceKind again = TraceKind::joint) {
  DerivationRequest options;
  options.order = 2;
  options.again = again;
  return m.analyse(options);
}

void expectSameGradients(const RunResult& run, const RunResult& eager, double tolerance = 1e-5) {
  test::Comparison comparison;
  for (const auto& [name, tensor] : eager.gradients) {
    const auto ours = run.gradients.find(name);
    if (ours == run.gradients.end()) {
      EXPECT_TRUE(isZero(tensor)) << name;
    } else {
      comparison.add(name, ours->second, tensor);
    }
  }
  for (const auto& [name, tensor] : run.gradients)
    EXPECT_TRUE(eager.gradients.contains(name) || isZero(tensor)) << name;
  EXPECT_LE(comparison.error(), tolerance) << comparison.worst() << comparison.failure();
}

// Holds D6: double backward is supported, and equals LibTorch's (create_graph).
TEST(HigherOrder, D6_SecondDerivativesEqualLibTorchs) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4}), w = m.parameter("w", {5, 4}), b = m.parameter("b", {5});
  const auto hidden = m.op("aten.tanh.default", {m.op("aten.linear.default", {x, w, b})});
  m.output(m.op("aten.sum.default", {m.op("aten.mul.Tensor", {hidden, m.op("aten.sin.default", {hidden})})}));
  const auto a = twice(m);
  ASSERT_TRUE(a->derived());
  for (const auto* trace : {&a->joint, &a->forward, &a->backward})
    for (const auto& problem : verify(*a->document, *trace))
      ADD_FAILURE() << trace->name << ": " << problem.place << ": " << problem.message;
  const auto eager = runEagerTwice(*a);
  EXPECT_TRUE(eager.gradients.contains("in.x") && eager.gradients.contains("p.w") &&
              eager.gradients.contains("in.cotangent_0"));
  expectSameGradients(runSplit(*a), eager);
}

TEST(HigherOrder, ABackwardTraceIsDifferentiatedToo) {
  ModelBuilder m;
  const auto x = m.input("x", {3});
  m.output(m.op("aten.exp.default", {m.op("aten.sin.default", {x})}));
  const auto a = twice(m, TraceKind::backward);
  ASSERT_TRUE(a->derived());
  const auto& inputs = a->computation().inputs;  // what was saved, then the cotangent
  ASSERT_EQ(inputs.size(), a->differentiated->backward.inputs.size());
  expectSameGradients(runSplit(*a), runEager(*a));
}

TEST(HigherOrder, TheOriginsLeadBackToTheFirstComputation) {
  ModelBuilder m;
  const auto x = m.input("x", {3});
  m.output(m.op("aten.sin.default", {x}));
  const auto sinOp = m.lastOp();
  const auto a = twice(m);
  const auto& first = *a->differentiated->document;  // the same ids
  ASSERT_FALSE(a->backward.ops.empty());
  for (auto op : a->backward.ops) {
    const auto& origin = a->document->boundSymbol(op).origin;
    EXPECT_NE(origin.role, Role::none);
    if (!origin.op) continue;  // sums the gradient of an input
    EXPECT_NE(first.boundSymbol(origin.op).origin.role, Role::none);
    EXPECT_EQ(first.boundSymbol(origin.op).origin.op, sinOp);
  }
}

TEST(HigherOrder, ThirdDerivative) {
  ModelBuilder m;
  const auto x = m.input("x", {1});
  m.output(m.op("aten.sin.default", {x}));
  DerivationRequest options;
  options.order = 3;
  const auto a = m.analyse(options);
  ASSERT_TRUE(a->derived());
  expectSameGradients(runSplit(*a), runEager(*a));
}

// Formulas that LibTorch only uses when nothing is differentiated again (here: the LU decomposition that det saves)
// would give a wrong second derivative without a word.
TEST(HigherOrder, FormulasAreThoseThatCanBeDifferentiated) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 3});
  m.output(m.op("aten.linalg_det.default", {x}));
  const auto a = twice(m);
  ASSERT_TRUE(a->derived());
  expectSameGradients(runSplit(*a), runEagerTwice(*a), 1e-4);
}

// rrelu_with_noise writes its noise and does not return it; what reads the noise later, reads what was written.
TEST(HigherOrder, WhatAnOpWritesWithoutReturningItIsReadByLaterOnes) {
  ModelBuilder m;
  const auto x = m.input("x", {5});
  m.output(m.op("aten.rrelu.default", {m.op("aten.sub.Tensor", {x, 0.5}), 0.125, 0.25, Argument::ofBool(false)}));
  const auto a = twice(m);
  ASSERT_TRUE(a->derived());
  for (const auto* trace : {&a->joint, &a->forward, &a->backward})
    for (const auto& problem : verify(*a->document, *trace))
      ADD_FAILURE() << trace->name << ": " << problem.place << ": " << problem.message;
  expectSameGradients(runSplit(*a), runEagerTwice(*a));
}

TEST(HigherOrder, AnOpWithoutSecondDerivativeTakesItsFormulaAndIsNamed) {
  ModelBuilder m;
  const auto x = m.input("x", {2, 3});
  m.output(m.op("aten.hardsigmoid.default", {x}));
  const auto a = twice(m);
  ASSERT_TRUE(a->derived());
  bool said = false;
  for (const Analysis* level = a.get(); level; level = level->differentiated.get())
    for (const auto& problem : level->problems) said |= problem.place == "aten.hardsigmoid_backward";
  EXPECT_TRUE(said);
}

TEST(HigherOrder, RecomputationAndDrawsComeAlong) {
  ModelBuilder m;
  const auto x = m.input("x", {8, 4});
  const auto dropped = m.op("aten.dropout.default", {m.op("aten.mul.Tensor", {x, x}), 0.5, Argument::ofBool(true)});
  m.output(m.op("aten.mul.Tensor", {dropped, dropped}));
  DerivationRequest options;
  options.order = 2;
  options.partition.recompute = {"all"};
  const auto a = m.analyse(options);
  ASSERT_TRUE(a->derived());
  expectSameGradients(runSplit(*a), runEagerTwice(*a));
}

class OfAModel : public testing::TestWithParam<const char*> {};

TEST_P(OfAModel, EqualsLibTorchs) {
  CheckOptions options;
  options.order = 2;
  const auto report = checkModel(sourcePath("") + GetParam(), options);
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << decide(report).reason;
}

INSTANTIATE_TEST_SUITE_P(
    HigherOrder, OfAModel,
    testing::Values("tests/data/models/mlp/model.pt2", "tests/data/models/batchnorm_train/model.pt2",
                    "tests/data/models/dropout_train/model.pt2", "tests/data/models/inplace_views/model.pt2",
                    "tests/data/models/multi_output/model.pt2", "tests/data/models/cond_hop/model.pt2"));

}  // namespace
}  // namespace retrograd::test

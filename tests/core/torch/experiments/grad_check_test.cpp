#include "core/torch/experiments/grad_check.h"

#include <gtest/gtest.h>

#include "core/questions/accumulation.h"
#include "core/questions/why.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/session/record_run.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

TEST(GradientCheck, ARightRangePasses) {
  const auto a = openModel(sourcePath("tests/data/models/mlp/model.pt2"));
  const auto& ops = a->computation().trace.ops;
  const auto check = checkGradients(*a, {ops.begin() + 1, ops.end()});
  EXPECT_TRUE(check.passed);
  ASSERT_EQ(check.rows.size(), 5u);  // the activation that flows in, two weights and biases
  for (const auto& row : check.rows) EXPECT_TRUE(row.note.empty()) << row.note;
}

TEST(GradientCheck, AWrongRuleFailsBothComparisons) {
  auto rules = std::make_shared<RuleRegistry>();
  rules->addGradTransform("aten.sin.default", [](RuleScope& s, const RuleArguments& a) {
    const auto y = s.call("aten.sin.default", {a[0]});
    s.putGrad(a[0], s.call("aten.mul.Tensor", {s.getGrad(y), s.call("aten.sin.default", {a[0]})}));  // cos is right
    return std::vector<Argument>{y};
  });
  ModelBuilder m;
  const auto x = m.input("x", {5});
  m.output(m.op("aten.exp.default", {m.op("aten.sin.default", {x})}));
  DerivationRequest options;
  options.rules = rules;
  const auto a = m.analyse(options);
  const auto check = checkGradients(*a, {a->computation().trace.ops[0]});
  EXPECT_FALSE(check.passed);
  EXPECT_GT(check.rows.at(0).finiteDifferences, 1e-2);
  EXPECT_GT(check.rows.at(0).libTorch, 1e-2);
  EXPECT_TRUE(checkGradients(*a, {a->computation().trace.ops[1]}).passed);  // the other op is right
}

TEST(GradientCheck, DrawsAreTheSameEachTime) {
  ModelBuilder m;
  const auto x = m.input("x", {64});
  m.output(m.op("aten.sum.default",
                {m.op("aten.dropout.default", {m.op("aten.mul.Tensor", {x, x}), 0.5, Argument::ofBool(true)})}));
  const auto a = m.analyse();
  EXPECT_TRUE(checkGradients(*a, a->computation().trace.ops).passed);
}

TEST(GradientCheck, WhatIsNotARangeIsRefused) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.exp.default", {m.op("aten.sin.default", {m.op("aten.tanh.default", {x})})}));
  const auto a = m.analyse();
  const auto& ops = a->computation().trace.ops;
  EXPECT_THROW(checkGradients(*a, {}), Error);
  EXPECT_THROW(checkGradients(*a, {ops[0], ops[2]}), Error);
  EXPECT_THROW(checkGradients(*a, {a->joint.ops.back()}), Error);
}

/// A model whose last op reads zeros: x less a detached x.
struct AtZero {
  ModelBuilder m;
  ValueId zero;
  AtZero() {
    const auto x = m.input("x", {4});
    zero = m.op("aten.sub.Tensor", {x, m.op("aten.detach.default", {x})});
  }
  GradientCheck checkLast(ValueId output) {
    m.output(output);
    const auto a = m.analyse();
    return checkGradients(*a, {a->computation().trace.ops.back()});
  }
};

TEST(GradientCheck, AKinkIsNeitherRightNorWrong) {
  AtZero model;
  const auto check = model.checkLast(model.m.op("aten.relu.default", {model.zero}));
  EXPECT_TRUE(check.passed);
  ASSERT_EQ(check.rows.size(), 1u);
  EXPECT_EQ(check.rows[0].verdict, GradientCheckRow::Verdict::atKink);
  EXPECT_NE(check.rows[0].note.find("at a kink: between"), std::string::npos) << check.rows[0].note;
}

TEST(GradientCheck, NaNIsNeverRight) {
  AtZero model;
  const auto check = model.checkLast(model.m.op("aten.div.Tensor", {model.zero, model.zero}));
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(check.rows.at(0).verdict, GradientCheckRow::Verdict::wrong);
  EXPECT_NE(check.rows.at(0).note.find("4 NaN"), std::string::npos) << check.rows.at(0).note;
}

TEST(GradientCheck, ADetachIsHeldConstantAndNamed) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.mul.Tensor", {x, m.op("aten.detach.default", {m.op("aten.sin.default", {x})})}));
  const auto a = m.analyse();
  const auto check = checkGradients(*a, a->computation().trace.ops);
  ASSERT_EQ(check.rows.size(), 1u);
  EXPECT_EQ(check.rows[0].verdict, GradientCheckRow::Verdict::right) << check.rows[0].finiteDifferences;
  EXPECT_NE(check.rows[0].note.find("detach"), std::string::npos) << check.rows[0].note;
}

TEST(GradientTerms, AreThoseThatAreSummedWithTheirNorms) {
  ModelBuilder m;
  const auto x = m.input("x", {3}), w = m.parameter("w", {3});
  const auto first = m.op("aten.mul.Tensor", {x, w});
  const auto firstOp = m.lastOp();
  const auto second = m.op("aten.mul.Tensor", {first, w});
  const auto secondOp = m.lastOp();
  m.output(second);
  m.output(w);
  const auto a = m.analyse();
  const auto record = recordRun(*a);
  const auto terms = gradientTerms(*a, w, record);
  ASSERT_EQ(terms.terms.size(), 3u);
  EXPECT_FALSE(terms.terms[0].op);  // the cotangent of the returned parameter comes first
  EXPECT_EQ(terms.terms[1].origin, secondOp);
  EXPECT_EQ(terms.terms[2].origin, firstOp);
  EXPECT_EQ(terms.gradient, whyNoGradient(*a, w).gradient);
  for (const auto& term : terms.terms) EXPECT_GT(term.norm, 0);
  EXPECT_GT(terms.norm, 0);
  EXPECT_EQ(gradientTerms(*a, x, record).terms.size(), 1u);
}

}  // namespace
}  // namespace retrograd::test

// Registered gradient rules: the protocol of get_grad and put_grad, pairs, decompositions, their order, their errors
// (A.. and E.. of the specification).
#include "core/derivation/registry.h"
#include "core/torch/analysis/analyse.h"

#include <gtest/gtest.h>

#include "core/torch/analysis/joint_run.h"
#include "core/torch/grad/library.h"
#include "core/torch/judging/compare.h"
#include "tests/support/comparison.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::test {
namespace {

using Arguments = std::vector<Argument>;

std::shared_ptr<RuleRegistry> exampleLibrary() {
  auto rules = std::make_shared<RuleRegistry>();
  loadLibrary(RETROGRAD_EXAMPLE_LIBRARY, *rules);
  return rules;
}

std::shared_ptr<const Analysis> derive(ModelBuilder& m, std::shared_ptr<const RuleRegistry> rules) {
  DerivationRequest options;
  options.rules = std::move(rules);
  return m.analyse(options);
}

/// Forward and backward run apart give LibTorch's own gradients.
void expectEager(const Analysis& a) {
  ASSERT_TRUE(a.derived()) << (a.problems.empty() ? "" : a.problems[0].message);
  const auto split = runSplit(a), eager = runEager(a);
  test::Comparison comparison;
  ASSERT_EQ(split.gradients.size(), eager.gradients.size());
  for (const auto& [name, tensor] : eager.gradients) comparison.add(name, split.gradients.at(name), tensor);
  EXPECT_LE(comparison.error(), 1e-6) << comparison.worst() << comparison.failure();
}

std::string problemOf(const Analysis& a) {
  EXPECT_FALSE(a.derived());
  return a.problems.empty() ? "" : a.problems[0].place + ": " + a.problems[0].message;
}

/// One op `aten.sin` of x under `rule`.
std::shared_ptr<const Analysis> sinUnder(GradTransform rule) {
  auto rules = std::make_shared<RuleRegistry>();
  rules->addGradTransform("aten.sin.default", std::move(rule));
  ModelBuilder m;
  m.output(m.op("aten.sin.default", {m.input("x", {3})}));
  return derive(m, rules);
}

std::shared_ptr<const Analysis> sinUnderPair(AugmentedForward forward, AugmentedBackward backward) {
  auto rules = std::make_shared<RuleRegistry>();
  rules->addAugmentedPair("aten.sin.default", std::move(forward), std::move(backward));
  ModelBuilder m;
  m.output(m.op("aten.sin.default", {m.input("x", {3})}));
  return derive(m, rules);
}

// Holds A3: a grad transform goes before a pair, a pair before LibTorch's own derivative, and that before a
// decomposition.
TEST(RegisteredRules, A3_OrderOfPrecedence) {
  const GradTransform transform = [](RuleScope& s, const RuleArguments& a) {
    const auto y = s.call("aten.sin.default", {a[0]});
    s.putGrad(a[0], s.call("aten.mul.Scalar", {s.getGrad(y), 3.0}));
    return Arguments{y};
  };
  const AugmentedForward forward = [](RuleScope& s, const RuleArguments& a) {
    return Augmented{{s.call("aten.sin.default", {a[0]})}, {}};
  };
  const AugmentedBackward backward = [](RuleScope& s, const Arguments&, const Arguments& g) {
    return Arguments{s.call("aten.neg.default", {g[0]})};
  };
  const Decomposition decomposition = [](RuleScope& s, const RuleArguments& a) {
    return Arguments{s.call("aten.tan.default", {a[0]})};
  };
  auto rules = std::make_shared<RuleRegistry>();
  const auto names = [&] {
    ModelBuilder m;
    m.output(m.op("aten.sin.default", {m.input("x", {3})}));
    const auto a = derive(m, rules);
    return opNames(*a, a->joint);
  };
  rules->addDecomposition("aten.sin.default", decomposition);
  EXPECT_EQ(names(), "sin cos mul");
  rules->addAugmentedPair("aten.sin.default", forward, backward);
  EXPECT_EQ(names(), "sin neg");
  rules->addGradTransform("aten.sin.default", transform);
  EXPECT_EQ(names(), "sin mul");
}

// Holds A7, A10: the rule emits forward and gradient in any order; what the outputs need runs in the forward, the rest
// in the backward.
TEST(RegisteredRules, A7_A10_SplitByWhatTheOutputsNeed) {
  const auto a = sinUnder([](RuleScope& s, const RuleArguments& args) {
    const auto cosine = s.call("aten.cos.default", {args[0]});  // is first and is needed by the backward only
    const auto y = s.call("aten.sin.default", {args[0]});
    s.putGrad(args[0], s.call("aten.mul.Tensor", {s.getGrad(y), cosine}));
    return Arguments{y};
  });
  expectEager(*a);
  EXPECT_EQ(opNames(*a, a->forward), "sin");
  EXPECT_EQ(opNames(*a, a->backward), "cos mul");
  for (auto op : a->backward.ops) {
    EXPECT_EQ(a->document->boundSymbol(op).origin.role, Role::gradient);
    EXPECT_EQ(a->document->boundSymbol(op).origin.op, a->computation().trace.ops[0]);
  }
}

// Holds B12: what the backward alone reads and can make of the inputs is computed there, and the input is saved.
TEST(RegisteredRules, B12_WhatOnlyTheBackwardNeedsIsNotSaved) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.sin.default", {x}));
  const auto a = m.analyse();
  EXPECT_EQ(opNames(*a, a->backward), "cos mul");
  ASSERT_EQ(a->backward.savedCount, 1u);
  EXPECT_EQ(a->backward.inputs[0], a->computation().trace.inputs[0]);
}

// Holds A6: a rule that reads no gradient gives the op no backward.
TEST(RegisteredRules, A6_RuleWithoutGetGradHasNoBackward) {
  const auto a = sinUnder(
      [](RuleScope& s, const RuleArguments& args) { return Arguments{s.call("aten.sin.default", {args[0]})}; });
  EXPECT_EQ(opNames(*a, a->forward), "sin");
  EXPECT_TRUE(a->backward.ops.empty());
  EXPECT_FALSE(a->backward.outputs[0]);
}

// Holds A8, with the words of E3.
TEST(RegisteredRules, A8_E3_OutputCountIsChecked) {
  const auto a = sinUnder([](RuleScope& s, const RuleArguments& args) {
    const auto y = s.call("aten.sin.default", {args[0]});
    return Arguments{y, y};
  });
  const auto problem = problemOf(*a);
  EXPECT_NE(problem.find("torch.ops.aten.sin.default"), std::string::npos) << problem;
  EXPECT_NE(problem.find("While generating forward and backward functions for aten.sin.default, encountered an error.\n"
                         "The number of outputs of the gradient transform function must be the same as the number of "
                         "outputs of the original forward function."),
            std::string::npos)
      << problem;
}

// Holds A12: the pair becomes one rule; an output that is an argument is copied first, so that its gradient is its own.
TEST(RegisteredRules, A12_PairBecomesARuleAndReturnedArgumentsAreCopied) {
  const auto a = sinUnderPair([](RuleScope&, const RuleArguments& args) { return Augmented{{args[0]}, {args[0]}}; },
                              [](RuleScope& s, const Arguments& saved, const Arguments& g) {
                                return Arguments{s.call("aten.mul.Tensor", {g[0], saved[0]})};
                              });
  ASSERT_TRUE(a->derived());
  EXPECT_EQ(opNames(*a, a->joint), "alias mul");
  ASSERT_EQ(a->backward.savedCount, 1u);
  EXPECT_EQ(a->backward.inputs[0], a->computation().trace.inputs[0]);
}

// Holds A13, with the words of E2.
TEST(RegisteredRules, A13_E2_GradientCountIsChecked) {
  auto rules = std::make_shared<RuleRegistry>();
  const AugmentedForward forward = [](RuleScope& s, const RuleArguments& a) {
    return Augmented{{s.call("aten.mul.Tensor", {a[0], a[1]})}, {}};
  };
  const auto under = [&](std::size_t count) {
    rules->addAugmentedPair("aten.mul.Tensor", forward, [count](RuleScope&, const Arguments&, const Arguments& g) {
      return Arguments(count, g[0]);
    });
    ModelBuilder m;
    m.output(m.op("aten.mul.Tensor", {m.input("x", {3}), m.input("y", {3})}));
    return derive(m, rules);
  };
  EXPECT_TRUE(under(2)->derived());
  EXPECT_NE(problemOf(*under(1)).find("Backward for aten.mul.Tensor returned 1 value(s), but expected 2"),
            std::string::npos);
  EXPECT_NE(problemOf(*under(3)).find("Backward for aten.mul.Tensor returned 3 value(s), but expected 2"),
            std::string::npos);
}

// Holds A13: arguments that are not tensors may be counted too, and their gradient is None.
TEST(RegisteredRules, A13_NumbersExpectNone) {
  auto rules = std::make_shared<RuleRegistry>();
  rules->addAugmentedPair(
      "aten.mul.Scalar",
      [](RuleScope& s, const RuleArguments& a) { return Augmented{{s.call("aten.mul.Scalar", {a[0], a[1]})}, {a[1]}}; },
      [](RuleScope& s, const Arguments& saved, const Arguments& g) {
        return Arguments{s.call("aten.mul.Scalar", {g[0], saved[0]}), Argument::ofNone()};
      });
  ModelBuilder m;
  m.output(m.op("aten.mul.Scalar", {m.input("x", {3}), 2.5}));
  const auto a = derive(m, rules);
  expectEager(*a);
  EXPECT_EQ(a->backward.savedCount, 0u);  // the number is a literal of both traces
}

// Holds A15: of an output whose gradient does not arrive the rule gets zeros, which are in the trace as such and only
// where they are used.
TEST(RegisteredRules, A15_ZerosForAnUnusedOutput) {
  auto rules = std::make_shared<RuleRegistry>();
  rules->addGradTransform("aten.aminmax.default", [](RuleScope& s, const RuleArguments& a) {
    const auto both = s.callAll("aten.aminmax.default", {a[0]});
    s.putGrad(a[0], s.call("aten.expand.default", {s.call("aten.add.Tensor", {s.getGrad(both[0]), s.getGrad(both[1])}),
                                                   Argument::ofList({Argument::ofInt(5)})}));
    return both;
  });
  ModelBuilder m;
  const auto x = m.input("x", {5});
  m.output(m.multi("aten.aminmax.default", {x}, 2)[1]);
  const auto a = derive(m, rules);
  ASSERT_TRUE(a->derived()) << problemOf(*a);
  EXPECT_EQ(opNames(*a, a->backward), "zeros_like add expand");
  EXPECT_EQ(a->document->boundSymbol(a->backward.ops[0]).origin.role, Role::zero);
}

// Holds A16, A20: each put_grad adds on the right of what is there.
TEST(RegisteredRules, A16_A20_PutsAddUpInOrder) {
  auto rules = std::make_shared<RuleRegistry>();
  rules->addGradTransform("aten.sin.default", [](RuleScope& s, const RuleArguments& a) {
    const auto y = s.call("aten.sin.default", {a[0]});
    const auto g = s.getGrad(y);
    s.putGrad(a[0], s.call("aten.exp.default", {g}));
    s.putGrad(a[0], s.call("aten.tanh.default", {g}));
    return Arguments{y};
  });
  ModelBuilder m;
  const auto x = m.input("x", {3});
  m.output(m.op("aten.sin.default", {x}));
  m.output(x);
  const auto a = derive(m, rules);
  EXPECT_EQ(opNames(*a, a->backward), "exp tanh add add");
  const auto first = a->document->operands(a->backward.ops[2]);
  EXPECT_EQ(first[0], a->joint.inputs.back());  // the cotangent of the returned input is first
  EXPECT_EQ(a->document->terms(a->document->boundSymbol(a->backward.ops[3]).origin).size(), 3u);
}

// Holds A17, with the words of E4.
TEST(RegisteredRules, A17_E4_PutGradAfterGetGrad) {
  const auto a = sinUnder([](RuleScope& s, const RuleArguments& args) {
    s.putGrad(args[0], s.getGrad(args[0]));
    return Arguments{args[0]};
  });
  EXPECT_NE(problemOf(*a).find("put_grad after get_grad on argument 0"), std::string::npos);
}

TEST(RegisteredRules, WrongUseIsAnErrorThatNamesTheRule) {
  const auto unknownRead = sinUnder([](RuleScope& s, const RuleArguments& args) {
    const auto y = s.call("aten.sin.default", {args[0]});
    s.putGrad(args[0], s.getGrad(s.call("aten.cos.default", {args[0]})));
    return Arguments{y};
  });
  EXPECT_NE(problemOf(*unknownRead).find("rule of torch.ops.aten.sin.default"), std::string::npos);
  EXPECT_NE(problemOf(*unknownRead).find("get_grad on a value that the rule does not return"), std::string::npos);
  const auto wrongShape = sinUnder([](RuleScope& s, const RuleArguments& args) {
    const auto y = s.call("aten.sin.default", {args[0]});
    s.putGrad(args[0], s.call("aten.sum.default", {s.getGrad(y)}));
    return Arguments{y};
  });
  EXPECT_NE(problemOf(*wrongShape).find("the gradient of argument 0 is cpu f32[], expected cpu f32[3]"),
            std::string::npos);
  const auto thrown =
      sinUnder([](RuleScope&, const RuleArguments&) -> Arguments { throw std::runtime_error("not today"); });
  EXPECT_NE(problemOf(*thrown).find("it fails: not today"), std::string::npos);
  const auto unknownOp = sinUnder(
      [](RuleScope& s, const RuleArguments& args) { return Arguments{s.call("aten.nothing.default", {args[0]})}; });
  EXPECT_NE(problemOf(*unknownOp).find("aten.nothing.default"), std::string::npos);
}

// Holds A2: subsymbols are processed where their op is, before what follows it, and have it as origin.
TEST(RegisteredRules, A2_DecompositionTakesThePlaceOfItsOp) {
  auto rules = exampleLibrary();
  ModelBuilder m;
  const auto x = m.input("x", {3});
  const auto cube = m.op("myops.cube.default", {m.op("aten.sin.default", {x})});
  const auto cubeOp = m.lastOp();
  m.output(m.op("aten.exp.default", {cube}));
  const auto a = derive(m, rules);
  ASSERT_TRUE(a->derived()) << problemOf(*a);
  EXPECT_EQ(opNames(*a, a->forward), "sin mul mul exp");
  EXPECT_EQ(a->document->boundSymbol(a->forward.ops[1]).origin.op, cubeOp);
  EXPECT_EQ(a->document->boundSymbol(a->forward.ops[2]).origin.op, cubeOp);
}

TEST(RegisteredRules, DecompositionsNestAndMayNotBeEndless) {
  auto rules = exampleLibrary();
  rules->addDecomposition("myops.no_rule.default", [](RuleScope& s, const RuleArguments& a) {
    return Arguments{s.call("myops.cube.default", {a[0]})};
  });
  const auto names = [&]() -> std::string {
    ModelBuilder m;
    m.output(m.op("myops.no_rule.default", {m.input("x", {3})}));
    const auto a = derive(m, rules);
    return a->derived() ? opNames(*a, a->forward) : problemOf(*a);
  };
  EXPECT_EQ(names(), "mul mul");
  rules->addDecomposition("myops.cube.default", [](RuleScope& s, const RuleArguments& a) {
    return Arguments{s.call("myops.no_rule.default", {a[0]})};
  });
  EXPECT_NE(names().find("leads back to itself"), std::string::npos);
}

// Holds A5 the other way round, on purpose: an op of a library is not taken for a constant. Without a derivative it is
// an error, E1, which names the op, its schema and its place.
TEST(RegisteredRules, A5_E1_OpWithoutAnyDerivative) {
  ModelBuilder m;
  exampleLibrary();
  m.output(m.op("myops.no_rule.default", {m.input("x", {3})}));
  const auto problem = problemOf(*m.analyse());
  EXPECT_NE(problem.find("torch.ops.myops.no_rule.default"), std::string::npos) << problem;
  EXPECT_NE(problem.find("Failed to find a gradient transform"), std::string::npos) << problem;
  EXPECT_NE(problem.find("myops::no_rule(Tensor x) -> Tensor"), std::string::npos) << problem;
  EXPECT_NE(problem.find("myops.no_rule.default#0"), std::string::npos) << problem;  // its place in the computation
}

TEST(RegisteredRules, WithoutGradientNoRuleIsAsked) {
  ModelBuilder m;
  auto rules = std::make_shared<RuleRegistry>();
  rules->addGradTransform("aten.abs.default",
                          [](RuleScope&, const RuleArguments&) -> Arguments { throw std::runtime_error("asked"); });
  m.output(m.op("aten.abs.default", {m.input("x", {3}, DType::i64)}));
  EXPECT_TRUE(derive(m, rules)->derived());
}

TEST(Library, BringsOpsAndRulesForFiles) {
  DerivationRequest options;
  options.rules = exampleLibrary();
  const auto a = openModel(sourcePath("tests/data/library/custom_ops.pt2"), options);
  expectEager(*a);
  for (const auto* trace : {&a->joint, &a->forward, &a->backward})
    for (auto op : trace->ops) EXPECT_NE(a->document->boundSymbol(op).origin.role, Role::none);
  std::set<std::string> made;
  for (auto op : a->forward.ops) made.insert(a->document->displayName(a->document->outputs(op)[0]));
  for (const auto* name : {"swish", "cube", "doubled"})
    EXPECT_TRUE(made.contains(name)) << name;  // values keep their names
}

TEST(Library, WhatIsNotALibraryIsRefused) {
  RuleRegistry rules;
  EXPECT_THROW(loadLibrary("no/such/library.so", rules), Error);
  EXPECT_THROW(loadLibrary(sourcePath("README.md"), rules), Error);
}

}  // namespace
}  // namespace retrograd::test

// The grad transform on small traces; each test names the statement of the specification that it holds (A.. transform,
// D.. defects of other tools that must not be copied).
#include "core/torch/grad/transform.h"
#include "core/torch/analysis/analyse.h"

#include <gtest/gtest.h>

#include "tests/core/torch/grad/expect_right.h"
#include "tests/support/model_builder.h"

namespace retrograd::test {
namespace {

using Arg = ModelBuilder::Arg;

std::vector<BoundSymbolId> withRole(const Analysis& a, const Trace& trace, Role role) {
  std::vector<BoundSymbolId> ops;
  for (auto op : trace.ops)
    if (bound(a, op).origin.role == role) ops.push_back(op);
  return ops;
}

TEST(GradTransform, A1_NothingRequiresGradGivesNoBackward) {
  ModelBuilder m;
  const auto x = m.input("x", {2, 3}, DType::i64);
  m.output(m.op("aten.add.Tensor", {x, x}));
  const auto a = m.analyse();
  EXPECT_TRUE(a->backward.ops.empty());
  for (auto gradient : a->backward.outputs) EXPECT_FALSE(gradient);
}

TEST(GradTransform, A4_OpsWithoutDifferentiableOutputAreConstant) {
  ModelBuilder m;
  const auto x = m.input("x", {3});
  const auto mask = m.op("aten.gt.Scalar", {x, 0.0});
  m.output(mask);
  m.output(m.op("aten.mul.Tensor", {x, x}));
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_NE(opNames(*a, a->forward).find("gt"), std::string::npos);
  for (auto op : a->backward.ops) EXPECT_NE(bound(*a, op).origin.op, a->computation().trace.ops[0]);
}

TEST(GradTransform, A4_SomeOutputsDifferentiable) {
  ModelBuilder m;
  const auto x = m.input("x", {5});
  const auto top = m.multi("aten.topk.default", {x, 2}, 2);
  m.output(top[0]);
  m.output(top[1]);
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_FALSE(a->joint.inputs.back());  // A22: integer outputs take no cotangent
}

TEST(GradTransform, A9_A10_ValuesBothSidesNeedAreComputedOnceAndSaved) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.sigmoid.default", {x}));
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_EQ(opNames(*a, a->joint), "sigmoid sigmoid_backward");
  EXPECT_EQ(a->backward.inputs[0], a->forward.outputs[0]);
}

TEST(GradTransform, A11_GroupsAreInReverseOrderOfTheForward) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.exp.default", {m.op("aten.sigmoid.default", {m.op("aten.tanh.default", {x})})}));
  const auto a = m.analyse();
  expectRight(a);
  std::int32_t last = 1 << 30;
  for (auto op : a->backward.ops) {
    EXPECT_LE(bound(*a, op).origin.op.index, last);
    last = bound(*a, op).origin.op.index;
  }
}

TEST(GradTransform, A14_GroupWithoutCotangentIsDropped) {
  ModelBuilder m;
  const auto x = m.input("x", {4}), w = m.parameter("w", {4});
  const auto compared = m.op("aten.mul.Tensor", {x, w});
  const auto mulOp = m.lastOp();
  const auto mask = m.op("aten.gt.Scalar", {compared, 0.0});
  m.output(m.op("aten.where.self", {mask, x, w}));
  const auto a = m.analyse();
  expectRight(a);
  for (auto op : a->backward.ops) EXPECT_NE(bound(*a, op).origin.op, mulOp);
}

TEST(GradTransform, A15_D8_UnusedOutputsAreNotComputedWith) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 3});
  const auto parts = m.multi("aten.linalg_slogdet.default", {x}, 2);
  m.op("aten.exp.default", {parts[0]});
  m.output(parts[1]);
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_EQ(opNames(*a, a->joint).find(" exp "), std::string::npos);  // A27: dead code is gone
  EXPECT_EQ(opNames(*a, a->backward).find("zeros"), std::string::npos) << opNames(*a, a->backward);
}

TEST(GradTransform, A16_ContributionsAreSummedInReplayOrderEarlierOnTheLeft) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto first = m.op("aten.sin.default", {x}), second = m.op("aten.exp.default", {x}),
             third = m.op("aten.tanh.default", {x});
  m.output(m.op("aten.add.Tensor", {m.op("aten.add.Tensor", {first, second}), third}));
  const auto a = m.analyse();
  expectRight(a);
  const auto additions = withRole(*a, a->backward, Role::accumulation);
  ASSERT_EQ(additions.size(), 2u);
  const auto terms = a->document->terms(bound(*a, additions[1]).origin);
  ASSERT_EQ(terms.size(), 3u);  // all of them are named
  EXPECT_EQ(a->document->operands(additions[0])[0], terms[0]);
  EXPECT_EQ(a->document->operands(additions[0])[1], terms[1]);
  EXPECT_EQ(a->document->operands(additions[1])[0], a->document->outputs(additions[0])[0]);
  EXPECT_EQ(a->document->operands(additions[1])[1], terms[2]);
  EXPECT_EQ(bound(*a, additions[0]).origin.value, x);
  EXPECT_FALSE(bound(*a, additions[0]).origin.op);  // x is a graph input
  EXPECT_EQ(bound(*a, a->document->value(terms[0]).producer).origin.op, a->computation().trace.ops[2]);
}

TEST(GradTransform, A18_OutputAlsoUsedAddsItsCotangentFirst) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto y = m.op("aten.sin.default", {x});
  m.output(y);
  m.output(m.op("aten.exp.default", {y}));
  const auto a = m.analyse();
  expectRight(a);
  const auto additions = withRole(*a, a->backward, Role::accumulation);
  ASSERT_EQ(additions.size(), 1u);
  EXPECT_EQ(a->document->value(a->document->operands(additions[0])[0]).kind, ValueKind::cotangent);
  EXPECT_EQ(bound(*a, additions[0]).origin.op, a->computation().trace.ops[0]);
}

TEST(GradTransform, A17_A20_ValueUsedTwiceInOneOp) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.mul.Tensor", {x, x}));
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_EQ(withRole(*a, a->backward, Role::accumulation).size(), 1u);
}

TEST(GradTransform, A19_D7_InputReturnedDirectlyHasItsCotangentAsGradient) {
  ModelBuilder m;
  const auto x = m.input("x", {4}), y = m.input("y", {4});
  m.output(x);
  m.output(m.op("aten.sin.default", {y}));
  const auto a = m.analyse();
  ASSERT_TRUE(a->derived());
  EXPECT_EQ(a->backward.outputs[0], a->joint.inputs[2]);
  EXPECT_EQ(a->document->value(a->backward.outputs[0]).kind, ValueKind::cotangent);
}

TEST(GradTransform, A21_GradientsAlignWithTheInputs) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.input("unused", {4});
  const auto n = m.input("n", {4}, DType::i64);
  m.buffer("b", {4});
  const auto frozen = m.parameter("frozen", {4}, false);
  m.output(m.op("aten.mul.Tensor", {m.op("aten.mul.Tensor", {x, n}), frozen}));
  const auto a = m.analyse();
  expectRight(a);
  ASSERT_EQ(a->backward.outputs.size(), 5u);
  EXPECT_TRUE(a->backward.outputs[0]);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_FALSE(a->backward.outputs[i]) << i;
}

TEST(GradTransform, A28_A29_BorderAndHistory) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.sin.default", {x}));
  const auto a = m.analyse();
  for (std::size_t i = 0; i < a->joint.ops.size(); ++i)
    EXPECT_EQ(bound(*a, a->joint.ops[i]).origin.role == Role::forward, i < a->joint.forwardCount);
  ASSERT_FALSE(a->joint.history.empty());
  EXPECT_EQ(a->joint.history.front().pass, "Grad transform");
  EXPECT_EQ(a->joint.history.front().parent, "computation");
}

TEST(GradTransform, A30_NamesDoNotClash) {
  ModelBuilder m;
  const auto x = m.input("cotangent_0", {4}), y = m.input("t4", {4});
  m.output(m.op("aten.mul.Tensor", {m.op("aten.sin.default", {x}), y}));
  const auto a = m.analyse();
  expectRight(a);
  std::set<std::string> names;
  std::set<ValueId> values;
  for (auto op : a->joint.ops)
    for (auto output : a->document->outputs(op)) values.insert(output);
  for (auto input : a->joint.inputs)
    if (input) values.insert(input);
  for (auto value : values)
    EXPECT_TRUE(names.insert(a->document->displayName(value)).second) << a->document->displayName(value);
}

TEST(GradTransform, D5_DetachCutsTheGradient) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  const auto y = m.op("aten.detach.default", {m.op("aten.sin.default", {x})});
  m.output(m.op("aten.exp.default", {y}));
  const auto a = m.analyse();
  ASSERT_TRUE(a->derived());
  EXPECT_TRUE(a->backward.ops.empty());
  EXPECT_FALSE(a->joint.inputs.back());
}

TEST(GradTransform, D9_RunsAgainOnTheSameDocument) {
  ModelBuilder m;
  const auto x = m.input("x", {4}), w = m.parameter("w", {4});
  m.output(m.op("aten.mul.Tensor", {m.op("aten.sin.default", {x}), w}));
  auto file = m.take();
  TransformOptions options;
  options.differentiate = {1, 1};
  options.inputMetas.resize(2);
  RuleCache cache;
  const auto first = gradTransform(*file.document, file.computation, options, cache);
  const auto second = gradTransform(*file.document, file.computation, options, cache);
  EXPECT_EQ(first.joint.ops.size(), second.joint.ops.size());
  EXPECT_EQ(cache.size(), 2u);  // no rule was derived twice
  EXPECT_TRUE(verify(*file.document, second.joint).empty());
}

TEST(GradTransform, D10_OnlyRecomputedOpsAreMarkedSo) {
  ModelBuilder m;
  const auto x = m.input("x", {4});
  m.output(m.op("aten.sin.default", {x}));
  const auto a = m.analyse();
  for (auto op : a->joint.ops) EXPECT_FALSE(bound(*a, op).recomputed);
}

TEST(GradTransform, E_AnUnderivableOpIsNamedWithItsPlace) {
  ModelBuilder m;
  const auto x = m.input("x", {4}), y = m.input("y", {4});
  m.output(m.op("aten.igamma.default", {x, y}));
  const auto a = m.analyse();
  EXPECT_FALSE(a->derived());
  ASSERT_FALSE(a->problems.empty());
  EXPECT_NE(a->problems[0].place.find("igamma"), std::string::npos);
}

TEST(GradTransform, DataDecidedOpsAreTracedWithTheInputsAndSaySo) {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4});
  const auto mask = m.op("aten.gt.Scalar", {x, 0.0});
  m.output(m.op("aten.exp.default", {m.op("aten.masked_select.default", {x, mask})}));
  const auto a = m.analyse();
  expectRight(a);
  EXPECT_FALSE(a->dataDependent.empty());
}

TEST(GradTransform, LiteralTensorsFilledBehindTheDispatcherAreConstants) {
  ModelBuilder m;  // the formula holds at::tensor(0): aten::empty, and a write that no op makes
  const auto theta = m.input("theta", {1, 2, 3});
  m.output(
      m.op("aten.affine_grid_generator.default", {theta, ModelBuilder::list({1, 1, 2, 1}), Argument::ofBool(false)}));
  const auto a = m.analyse();
  EXPECT_FALSE(a->constants.empty());
  expectRight(a);
}

TEST(GradTransform, RulesAreSharedByEqualLayers) {
  ModelBuilder m;
  auto x = m.input("x", {4, 4});
  for (int layer = 0; layer < 20; ++layer)
    x = m.op("aten.tanh.default", {m.op("aten.mm.default", {x, m.parameter("w" + std::to_string(layer), {4, 4})})});
  m.output(x);
  auto file = m.take();
  TransformOptions options;
  options.differentiate.assign(file.computation.inputs.size(), 1);
  options.inputMetas.resize(file.computation.inputs.size());
  RuleCache cache;
  const auto result = gradTransform(*file.document, file.computation, options, cache);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_GT(result.joint.ops.size(), 120u);
}

/// Whether the decomposition in the joint computes vectors, as it does by default.
bool computesVectors(const Analysis& a, const std::string& decomposition) {
  for (auto op : a.joint.ops)
    if (a.document->symbol(bound(a, op).symbol).name == decomposition) {
      const auto& arguments = a.document->pattern(bound(a, op).pattern).arguments;
      return arguments.size() < 3 || arguments[2].kind != Argument::Kind::boolean || arguments[2].integer != 0;
    }
  ADD_FAILURE() << "no " << decomposition;
  return false;
}

// Without a gradient eager PyTorch takes a routine that computes no vectors, and gives other last bits: what rounds
// them would differ by one.
TEST(GradTransform, SingularValuesWithoutAGradientAreComputedAlone) {
  const std::pair<std::string, std::string> kinds[] = {{"aten.linalg_svdvals.default", "aten._linalg_svd.default"},
                                                       {"aten.linalg_eigvalsh.default", "aten._linalg_eigh.default"}};
  for (const auto& [values, decomposition] : kinds)
    for (const bool differentiated : {false, true}) {
      ModelBuilder m;
      m.output(m.op(values, {differentiated ? m.input("x", {3, 3}) : m.buffer("x", {3, 3})}));
      const auto a = m.analyse();
      EXPECT_EQ(computesVectors(*a, decomposition), differentiated) << values;
      expectRight(a);
    }
  ModelBuilder m;  // who wants the vectors has them
  const auto all = m.multi("aten.linalg_svd.default", {m.buffer("x", {3, 3})}, 3);
  m.output(all[0]);
  EXPECT_TRUE(computesVectors(*m.analyse(), "aten._linalg_svd.default"));
}

}  // namespace
}  // namespace retrograd::test

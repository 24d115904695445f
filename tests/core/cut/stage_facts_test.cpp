#include "core/cut/stage_facts.h"

#include "core/cut/as_read.h"
#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

constexpr const char* skipping = R"(
def computation(w, b, x):
    # w: "f32[4, 4]", parameter p.w
    # b: "f32[4]", buffer p.b
    # x: "f32[2, 4]"
    h = aten.mm(x, w)  # h: "f32[2, 4]"
    v = aten.view(h, [8])  # v: "f32[8]"
    i = aten.relu(v)  # i: "f32[8]"
    j = aten.view(i, [2, 4])  # j: "f32[2, 4]"
    k = aten.add.Tensor(j, b)  # k: "f32[2, 4]"
    m = aten.add.Tensor(k, h)  # m: "f32[2, 4]"
    return m
)";

/// As if the model had been derived: nothing but the computation.
Analysis wholeOf(const ModelFile& model) {
  Analysis whole;
  whole.file = model;
  whole.document = model.document;
  return whole;
}

TEST(StageFacts, WeighWhatAStageHoldsAndMakes) {
  const auto model = modelOf(skipping);
  const auto split = splitOf(model, {2, 4});
  OpCosts costs(6);
  costs.forward = {10, 0, 3, 0, 2, 1};
  costs.backward = {20, 0, 3, 0, 0, 1};
  const auto facts = stageFacts(wholeOf(model), model, split, costs);
  ASSERT_EQ(facts.size(), 3u);
  EXPECT_EQ(facts[0].ops, 2u);
  EXPECT_EQ(facts[0].parameters, 1u);
  EXPECT_EQ(facts[0].parameterElements, 16);
  EXPECT_EQ(facts[0].parameterBytes, 64);
  EXPECT_EQ(facts[0].activationBytes, 32) << "a view takes no memory of its own";
  EXPECT_EQ(facts[0].time(), 30);
  EXPECT_EQ(facts[1].activationBytes, 32);
  EXPECT_EQ(facts[2].parameters, 0u);
  EXPECT_EQ(facts[2].bufferBytes, 16);
  EXPECT_EQ(facts[2].activationBytes, 64);
  EXPECT_EQ(facts[2].forward, 3);
  EXPECT_EQ(facts[2].backward, 1);
}

TEST(StageFacts, TrafficIsSummedByPairOfStages) {
  const auto model = modelOf(skipping);
  auto whole = wholeOf(model);
  // h goes to stages 1 (as v) and 2, j to stage 2.
  const auto traffic = stageTraffic(whole, model, splitOf(model, {2, 4}));
  ASSERT_EQ(traffic.size(), 3u);
  EXPECT_EQ(traffic[0].source, 0);
  EXPECT_EQ(traffic[0].destination, 1);
  EXPECT_EQ(traffic[0].valueBytes, 32);
  EXPECT_EQ(traffic[1].destination, 2);
  EXPECT_EQ(traffic[1].valueBytes, 32);
  EXPECT_EQ(traffic[2].source, 1);
  EXPECT_EQ(traffic[2].gradientBytes, 0) << "nothing requires a gradient";
  for (auto op : model.computation.trace.ops) model.document->value(model.document->outputs(op)[0]).requiresGrad = true;
  EXPECT_EQ(stageTraffic(whole, model, splitOf(model, {2, 4}))[2].gradientBytes, 32);
}

// Draws come in one order, so a stage that draws nothing itself waits too, and hands the generator on.
TEST(StageFacts, StagesOfAModelThatDrawsFollowOneAnother) {
  const auto model = modelOf(R"(
def computation(x, y):
    # x: "f32[4]"
    # y: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    b = aten.cos(y)  # b: "f32[4]"
    c = aten.add.Tensor(a, b)  # c: "f32[4]"
    return c
)");
  auto whole = wholeOf(model);
  whole.joint.ops = model.computation.trace.ops;
  const auto split = splitOf(model, {1, 2});
  EXPECT_FALSE(drawsAnything(whole));
  EXPECT_EQ(stageEdges(whole, split), (std::vector<StageEdge>{{0, 2}, {1, 2}}));
  model.document->boundSymbol(whole.joint.ops[2]).effects |= effect::random;
  EXPECT_TRUE(drawsAnything(whole));
  EXPECT_EQ(stageEdges(whole, split), (std::vector<StageEdge>{{0, 2}, {1, 2}, {0, 1}}));
}

TEST(StageFacts, SavedBytesBelongToTheStageThatMakesThem) {
  auto model = modelOf(skipping);
  auto whole = wholeOf(model);
  const auto value = [&](const char* name) {
    for (auto op : model.computation.trace.ops)
      if (model.document->displayName(model.document->outputs(op)[0]) == name) return model.document->outputs(op)[0];
    return ValueId();
  };
  whole.backward.inputs = {value("i"), value("h"), value("j"), model.computation.trace.inputs[0]};
  whole.backward.savedCount = 4;
  const auto facts = stageFacts(whole, model, splitOf(model, {2, 4}), OpCosts());
  EXPECT_EQ(facts[0].savedBytes, 32) << "h; w is a parameter";
  EXPECT_EQ(facts[1].savedBytes, 32) << "i and j are one storage";
  EXPECT_EQ(facts[2].savedBytes, 0);
  EXPECT_EQ(facts[0].time(), 0);
}

// Holds P23: a value goes straight to its user; on the way it passes the borders between.
TEST(StageFacts, ABorderIsPassedByWhatGoesFurther) {
  const auto model = modelOf(skipping);
  auto whole = wholeOf(model);
  for (std::size_t i = 0; i < model.document->valueCount(); ++i) {
    const ValueId id(static_cast<std::int64_t>(i));
    model.document->value(id).requiresGrad = model.document->displayName(id) == "h";
  }
  const auto split = splitOf(model, {2, 4});
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 v[0]", "1>2 j[0]", "0>2 h[1]"}));
  const auto borders = stageBorders(whole, model, split);
  ASSERT_EQ(borders.size(), 2u);
  EXPECT_EQ(borders[0].values, 2u) << "v, and h on its way to stage 2";
  EXPECT_EQ(borders[0].valueBytes, 64);
  EXPECT_EQ(borders[0].gradients, 1u);
  EXPECT_EQ(borders[0].gradientBytes, 32);
  EXPECT_EQ(borders[1].values, 2u);
  EXPECT_EQ(borders[1].gradientBytes, 32);
}

// Holds P46, P51: what does not lead to the loss, or only where no gradient passes, has none to be sent back.
TEST(StageFacts, OnlyWhatLeadsToTheLossGetsAGradient) {
  const auto model = modelOf(R"(
def computation(x, w):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter p.w
    a = aten.mm(x, w)  # a: "f32[4, 4]"
    b = aten.mm(a, w)  # b: "f32[4, 4]"
    d = aten.detach(b)  # d: "f32[4, 4]"
    m = aten.mul.Tensor(a, d)  # m: "f32[4, 4]"
    s = aten.sin(b)  # s: "f32[4, 4]"
    loss = aten.sum(m)  # loss: "f32[]"
    return s, loss
)");
  for (std::size_t i = 0; i < model.document->valueCount(); ++i) {
    const ValueId id(static_cast<std::int64_t>(i));
    model.document->value(id).requiresGrad =
        model.document->displayName(id) != "x" && model.document->displayName(id) != "d";
  }
  auto whole = wholeOf(model);
  const auto split = splitOf(model, {1, 2, 5});  // a | b | d m s | loss
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 a[0]", "1>2 b[0]", "0>2 a[0]", "2>3 m[0]"}));
  const auto with = [&](const Names& outputs) {
    whole.request.cotangents.clear();
    for (const auto& output : outputs) whole.request.cotangents[output] = {};
    return gradientEdges(whole, split);
  };
  EXPECT_EQ(with({"0", "1"}), (std::vector<char>{0, 1, 1, 1, 1}));
  EXPECT_EQ(with({"1"}), (std::vector<char>{0, 1, 0, 1, 1}))
      << "b reaches the loss without its gradient, a by another way";
  EXPECT_EQ(stageBorders(whole, model, split)[1].gradients, 1u) << "a on its way; b has none";
  EXPECT_EQ(stageTraffic(whole, model, split)[2].gradientBytes, 0) << "from 1 to 2";
  EXPECT_EQ(with({"0"}), (std::vector<char>{0, 1, 1, 1, 0})) << "it is told by value: a leads to s by way of b";
  EXPECT_EQ(with({}), (std::vector<char>{0, 1, 1, 1, 1})) << "not derived: all that require one";
}

TEST(StageFacts, MarkersAreInNoStage) {
  const auto model = modelOf(R"(
def computation(x):
    # x: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    pippy._pipe_split.default()
    b = aten.cos(a)  # b: "f32[4]"
    return b
)");
  EXPECT_EQ(stageOfOps(model.computation, splitAtMarkers(model)), (std::vector<int>{0, -1, 1}));
}

TEST(AsRead, IsADocumentOfItsOwnUnderTheSameIds) {
  const auto model = modelOf(skipping);
  const auto whole = wholeOf(model);
  const auto copy = asRead(whole);
  EXPECT_NE(copy.document, model.document);
  const auto ops = model.computation.trace.ops;
  for (auto op : ops)
    EXPECT_EQ(copy.document->value(copy.document->outputs(op)[0]).storage,
              model.document->value(model.document->outputs(op)[0]).storage);
  EXPECT_EQ(edgesOf(copy, splitOf(copy, {2, 4})), edgesOf(model, splitOf(model, {2, 4})));
}

TEST(AsRead, MemoryThatDerivingMovedIsPutBack) {
  const auto model = modelOf(skipping);
  auto& document = *model.document;
  const auto view = document.outputs(model.computation.trace.ops[1])[0];
  const auto base = document.value(document.outputs(model.computation.trace.ops[0])[0]).storage;
  document.value(view).storage = document.addStorage(32, view);
  const auto copy = asRead(wholeOf(model));
  EXPECT_EQ(copy.document->value(view).storage, base);
}

}  // namespace
}  // namespace retrograd

// Stages as a rank computes them: microbatches, the two halves of a backward, what goes over a border and what has to
// be summed.
#include "core/torch/stages/rank_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/cut/batch.h"
#include "core/cut/stage_facts.h"
#include "core/ranks/message.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/checking/rank_check.h"
#include "core/torch/judging/compare.h"
#include "tests/core/cut/text_models.h"
#include "tests/core/formats/cases.h"
#include "tests/support/comparison.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

const RequestFor noOptions = [](const ModelFile&) { return DerivationRequest(); };

std::string marked(const std::string& model) { return sourcePath("tests/data/pipeline/") + model + "/model.pt2"; }

std::shared_ptr<const Pipeline> derived(const std::string& file, const CutRequest& request = {}) {
  auto cut = openCut(file, request, {}, noOptions, true);
  return std::make_shared<const Pipeline>(
      derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split)));
}

CutRequest inStages(std::size_t stages) {
  CutRequest request;
  request.stages = stages;
  request.balance = Balance::estimate;
  return request;
}

/// As it arrives from another process.
TensorMap passed(const TensorMap& values) {
  return decodeMessage(std::make_shared<const std::vector<std::byte>>(encodeMessage({values, {}}))).tensors;
}

/// All forwards of a microbatch, then all backwards; what each stage sends lies by source and destination until it is
/// read. `linked`: as over a link of this device.
TensorMap gradientsOf(const std::vector<Microbatch>& microbatches, bool inHalves, std::optional<Device> linked = {}) {
  RankStages runner(microbatches, false, linked);
  const auto count = static_cast<std::int32_t>(microbatches.front().pipeline->stages.size());
  for (std::int32_t m = 0; m < static_cast<std::int32_t>(microbatches.size()); ++m) {
    std::map<std::int32_t, StageValues> arriving, returning;
    for (std::int32_t s = 0; s < count; ++s)
      for (auto& [to, values] : runner.forward(s, m, arriving[s])) arriving[to][s] = linked ? values : passed(values);
    for (std::int32_t s = count; s-- > 0;)
      for (auto& [to, values] :
           inHalves ? runner.backwardInput(s, m, returning[s]) : runner.backward(s, m, returning[s]))
        returning[to][s] = linked ? values : passed(values);
    for (std::int32_t s = 0; inHalves && s < count; ++s) runner.backwardWeight(s, m);
  }
  return runner.parameterGradients();
}

void expectEqual(const TensorMap& found, const TensorMap& expected) {
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_FALSE(expected.empty());
  test::Comparison comparison;
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    comparison.add(name, found.at(name), tensor);
  }
  EXPECT_LE(comparison.error(), 1e-6) << comparison.worst() << comparison.failure();
}

// Holds P53. Gradients add up over microbatches, as running twice does in eager.
TEST(RankStages, P53_GradientsAddUpOverMicrobatches) {
  for (const auto* model : {"mlp_3st", "shared_2st"}) {
    const auto microbatches = rotatedMicrobatches(derived(marked(model)), 3);
    const auto expected = runUnsplit(microbatches).gradients;
    expectEqual(gradientsOf(microbatches, false), expected);
    EXPECT_FALSE(identical(runUnsplit({microbatches.front()}).gradients.begin()->second, expected.begin()->second));
  }
}

// Holds P61. The gradients of the inputs first and those of the parameters later are together the whole backward.
TEST(RankStages, P61_TheHalvesOfABackwardGiveAllOfIt) {
  for (const auto* model : {"mlp_3st", "shared_2st"}) {
    const auto microbatches = rotatedMicrobatches(derived(marked(model)), 2);
    expectEqual(gradientsOf(microbatches, true), runUnsplit(microbatches).gradients);
    expectEqual(gradientsOf(microbatches, true, Device()), runUnsplit(microbatches).gradients);
  }
}

// Holds P38. What several stages have a copy of has to be summed over ranks, by the first of its names.
TEST(RankStages, P38_SharedParametersAreSummedOverRanks) {
  EXPECT_TRUE(gradientsToSum(*derived(marked("mlp_3st"))).empty());
  const auto pipeline = derived(marked("shared_2st"));
  const auto sums = gradientsToSum(*pipeline);
  const auto gradients = runUnsplit(rotatedMicrobatches(pipeline, 1)).gradients;
  std::vector<std::string> names;
  for (const auto& [name, meta] : sums) {
    names.push_back(name);
    ASSERT_TRUE(gradients.contains(name)) << name;
    EXPECT_EQ(meta.sizes, gradients.at(name).meta.sizes) << name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"p.e.weight", "p.l.bias", "p.l.weight"})) << "all three are in two stages";
}

// Holds P37, P38. Transmitted, a parameter has its gradient in the stage that holds it, and nothing is left to sum.
TEST(RankStages, P37_TransmittedParametersNeedNoSum) {
  for (const auto* model : {"shared_2st", "gpt4_2st"}) {
    auto file = marked(model);
    if (!std::filesystem::exists(file)) file = (test::cases() / "pipeline" / model / "model.pt2").string();
    if (!std::filesystem::exists(file)) continue;
    CutRequest request;
    request.options.multiUse = MultiUse::transmit;
    const auto pipeline = derived(file, request);
    EXPECT_TRUE(gradientsToSum(*pipeline).empty()) << model;
    ASSERT_FALSE(pipeline->split.shared.empty()) << model;
    const auto microbatches = rotatedMicrobatches(pipeline, 2);
    expectEqual(gradientsOf(microbatches, false), runUnsplit(microbatches).gradients);
  }
}

TEST(RankStages, MicrobatchesDifferAndKeepTheirElements) {
  const auto microbatches = rotatedMicrobatches(derived(marked("mlp_3st")), 2);
  const auto &first = microbatches[0].inputs, &second = microbatches[1].inputs;
  ASSERT_FALSE(first.empty());
  const auto& [name, tensor] = *first.begin();
  EXPECT_TRUE(identical(tensor, microbatches[0].pipeline->whole->request.inputs.at(name)));
  auto a = asDoubles(tensor), b = asDoubles(second.at(name));
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(b[(i + 1) % a.size()], a[i]) << i;
}

// Holds P31. The generator goes from stage to stage, so that every microbatch draws what the model in one piece draws
// from its seed.
TEST(RankStages, P31_DrawsAreThoseOfTheModelInOnePiece) {
  const auto file = test::writeTemporary("draws.txt", R"(
def computation(x, w):
    # x: "f32[8, 8]"
    # w: "f32[8, 8]", parameter w
    a = aten.dropout(x, 0.5, True)
    b = aten.mm(a, w)
    c = aten.dropout(b, 0.5, True)
    d = aten.tanh(c)
    e = aten.dropout(d, 0.5, True)
    f = aten.dropout(a, 0.5, True)
    g = aten.add.Tensor(e, f)
    return g
)");
  CutRequest request;
  request.at = {"#b", "#d", "#f"};
  const auto pipeline = derived(file, request);
  for (const bool inHalves : {false, true}) {
    const auto microbatches = rotatedMicrobatches(pipeline, 3);
    expectEqual(gradientsOf(microbatches, inHalves), runUnsplit(microbatches).gradients);
  }
  const auto edges = stageEdges(*pipeline->whole, pipeline->split);
  for (std::int32_t s = 0; s < 3; ++s)
    EXPECT_NE(std::find(edges.begin(), edges.end(), StageEdge{s, s + 1}), edges.end()) << s;
  // Microbatches of one input differ by what they draw.
  auto same = rotatedMicrobatches(pipeline, 2);
  same[1].inputs = same[0].inputs;
  const auto run = runUnsplit(same);
  EXPECT_FALSE(identical(*run.outputs[0].at(0), *run.outputs[1].at(0)));
}

/// Values and gradients are dense on their way, in whatever strides: a view in the next stage is only valid in those
/// that it was derived for.
TEST(RankStages, ValuesArriveInTheStridesThatTheStageWasDerivedFor) {
  const auto file = test::writeTemporary("strides.txt", R"(
def computation(x, w):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    a = aten.mm(x, w)
    t = aten.transpose.int(a, 0, 1)
    s = aten.sin(t)
    u = aten.transpose.int(s, 0, 1)
    v = aten.view(u, [16])
    y = aten.cos(v)
    return y
)");
  for (const std::vector<std::string>& at : {std::vector<std::string>{"#u"}, {"#s"}, {"#t", "#u", "#v"}}) {
    CutRequest request;
    request.at = at;
    const auto microbatches = rotatedMicrobatches(derived(file, request), 2);
    expectEqual(gradientsOf(microbatches, false), runUnsplit(microbatches).gradients);
  }
}

// Holds P58. A value that several later stages read, also past others, goes to each, and its gradients come back from
// each.
TEST(RankStages, P58_SkipConnectionsAreTrained) {
  const auto file = test::writeTemporary("skips.txt", R"(
def computation(x, w, u):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    # u: "f32[4, 4]", parameter u
    a = aten.mm(x, w)
    b = aten.tanh(a)
    c = aten.mm(b, u)
    d = aten.add.Tensor(c, a)
    e = aten.mul.Tensor(d, b)
    return e
)");
  CutRequest request;
  request.at = {"#b", "#c", "#d", "#e"};
  const auto microbatches = rotatedMicrobatches(derived(file, request), 2);
  for (const bool inHalves : {false, true})
    expectEqual(gradientsOf(microbatches, inHalves), runUnsplit(microbatches).gradients);
}

// Holds P60. A gradient that is None is not sent, and no zeros are in its place.
TEST(RankStages, P60_AMissingGradientIsNotSent) {
  const auto file = test::writeTemporary("none.txt", R"(
def computation(x, w, u):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    # u: "f32[4, 4]", parameter u
    a = aten.mm(x, w)
    p = aten.sin(a)
    q = aten.detach(p)
    b = aten.mm(a, u)
    r = aten.mul.Tensor(b, q)
    loss = aten.sum(r)
    return loss
)");
  CutRequest request;
  request.at = {"#q"};
  const auto pipeline = derived(file, request);
  RankStages runner(rotatedMicrobatches(pipeline, 1));
  auto sent = runner.forward(0, 0, {});
  ASSERT_EQ(sent.at(1).size(), 2u) << "a and p cross";
  runner.forward(1, 0, {{0, sent.at(1)}});
  const auto back = runner.backward(1, 0, {});
  ASSERT_EQ(back.at(0).size(), 1u) << "p is detached";
  const auto& outputs = pipeline->split.stages[0].outputs;
  const auto& value = outputs.at(std::stoul(back.at(0).begin()->first)).value;
  EXPECT_EQ(pipeline->whole->document->displayName(value), "a");
}

/// Opens a dynamic model for the first of the microbatches and derives all.
struct BatchRun {
  BatchRun(const std::string& model, const TensorMap& batch, std::int64_t count,
           const std::map<std::string, Merge>& merges, double scale) {
    const auto parts = cutBatch(batch, count).microbatches;
    const RequestForInputs requestFor = [](const ModelFile&, const TensorMap& inputs, const TensorMap& cotangents) {
      DerivationRequest options;
      options.inputs = inputs;
      options.cotangents = cotangents;
      return options;
    };
    const auto cut = openCut(
        sourcePath("tests/data/dynamic/") + model + "/model.pt2", inStages(2), {},
        [&](const ModelFile& file) { return requestFor(file, parts[0], {}); }, true);
    microbatches = deriveMicrobatches(cut, {}, parts, std::vector<TensorMap>(parts.size()), requestFor);
    results.gradients = gradientsOf(microbatches, false);
    results.scale = scale;
    for (auto& [name, tensor] : results.gradients) tensor = scaledTensor(tensor, scale);
    whole = deriveBatch(cut, microbatches, batch, merges, scale, requestFor);
    EXPECT_NE(whole.analysis, nullptr) << whole.whyNot;
    verdict = checkRank(results, microbatches, whole, merges);
  }

  std::vector<Microbatch> microbatches;
  RankResults results;
  WholeBatch whole;
  Report verdict;
};

TensorData drawn(std::vector<std::int64_t> sizes) {
  Analysis scratch;
  TensorMeta meta;
  meta.sizes = std::move(sizes);
  meta.strides = contiguousStrides(meta.sizes);
  chooseCotangents(scratch, {}, {{"0", meta}});
  return scratch.request.cotangents.at("0");
}

// Holds P63. A batch that does not come out even is derived once for each shape, and the microbatches give what the
// batch gives.
TEST(RankStages, P63_MicrobatchesOfABatchGiveItsGradients) {
  const BatchRun run("recurrence", {{"x", drawn({7, 5, 4})}}, 3, {}, 1);
  ASSERT_EQ(run.microbatches.size(), 3u);
  EXPECT_NE(run.microbatches[0].pipeline, run.microbatches[1].pipeline);
  EXPECT_EQ(run.microbatches[1].pipeline, run.microbatches[2].pipeline);
  EXPECT_EQ(test::verdictOf(run.verdict), Verdict::pass) << test::textOf(run.verdict);
  EXPECT_GT(run.verdict.judged, 1u);
  EXPECT_NE(run.verdict.notes.front().find("whole batch"), std::string::npos);
}

// Holds P62. A mean over the batch is the mean of its microbatches' means: their gradients are divided by how many
// there are.
TEST(RankStages, P62_GradientsOfMeansAreScaled) {
  const TensorMap batch{{"x", drawn({8, 5, 8})}};
  const auto divided = BatchRun("attention", batch, 4, {}, 0.25).verdict;
  EXPECT_EQ(test::verdictOf(divided), Verdict::pass) << test::textOf(divided);
  EXPECT_EQ(test::verdictOf(BatchRun("attention", batch, 4, {}, 1).verdict), Verdict::fail);
  // Whose output is said to be a mean, its cotangent is shared out instead.
  const auto told = BatchRun("attention", batch, 4, {{"1", {Merge::Kind::mean, 0}}}, 1).verdict;
  EXPECT_EQ(test::verdictOf(told), Verdict::pass) << test::textOf(told);
  // A cotangent that is given for it as well.
  const auto given = drawn({3});
  const auto shared = cutCotangents({{"1", given}}, 4, {{"1", {Merge::Kind::mean, 0}}});
  ASSERT_EQ(shared.size(), 4u);
  for (const auto& each : shared) EXPECT_TRUE(identical(each.at("1"), scaledTensor(given, 0.25)));
}

// Holds P63. Outputs are put together along a dimension, folded, or one for all; losses become a list.
TEST(RankStages, P63_OutputsAreMerged) {
  const auto a = drawn({2, 3}), b = drawn({1, 3}), c = drawn({2, 4});
  EXPECT_EQ(mergeOutputs("0", {a, b}, {}).meta.sizes, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(mergeOutputs("0", {a, c}, {Merge::Kind::concatenate, 1}).meta.sizes, (std::vector<std::int64_t>{2, 7}));
  EXPECT_EQ(mergeOutputs("0", {drawn({}), drawn({})}, {}).meta.sizes, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(asDoubles(mergeOutputs("0", {a, a}, {Merge::Kind::sum, 0})).front(), 2 * asDoubles(a).front());
  EXPECT_TRUE(identical(mergeOutputs("0", {a, a}, {Merge::Kind::mean, 0}), a));
  EXPECT_TRUE(identical(mergeOutputs("0", {a, a}, {Merge::Kind::same, 0}), a));
  EXPECT_NE(test::errorOf([&] {
              mergeOutputs("0", {a, c}, {Merge::Kind::same, 0});
            }).find("output 0: it is not the same in all microbatches"),
            std::string::npos);
  EXPECT_NE(test::errorOf([&] { mergeOutputs("0", {a, c}, {}); }).find("do not go together"), std::string::npos);
  const auto cotangents = cutCotangents({{"0", drawn({3, 2})}}, 3, {});
  EXPECT_EQ(cotangents.at(2).at("0").meta.sizes, (std::vector<std::int64_t>{1, 2}));
  EXPECT_NE(test::errorOf([&] {
              cutCotangents({{"0", drawn({2, 2})}}, 3, {});
            }).find("there are 3 microbatches, and 0 has 2 along dimension 0"),
            std::string::npos);
}

// Holds P63. A static file takes microbatches of its own shape only, and the error says which of them is of another.
TEST(RankStages, P63_AStaticFileTakesItsShapeOnly) {
  const auto file = sourcePath("tests/data/models/mlp/model.pt2");
  const auto whole = openModel(file);
  const auto& [name, sample] = *whole->request.inputs.begin();
  auto sizes = sample.meta.sizes;
  const RequestForInputs requestFor = [](const ModelFile&, const TensorMap& inputs, const TensorMap&) {
    DerivationRequest options;
    options.inputs = inputs;
    return options;
  };
  const auto cut = openCut(file, inStages(2), {}, noOptions, true);
  sizes[0] += 1;
  const std::vector<TensorMap> inputs{{{name, sample}}, {{name, drawn(sizes)}}};
  EXPECT_NE(test::errorOf([&] { deriveMicrobatches(cut, {}, inputs, {{}, {}}, requestFor); }).find("microbatch 1 of 2"),
            std::string::npos);
  const auto microbatches =
      deriveMicrobatches(cut, {}, {{{name, sample}}, {{name, drawn(sample.meta.sizes)}}}, {{}, {}}, requestFor);
  EXPECT_EQ(microbatches[0].pipeline, microbatches[1].pipeline);
  sizes[0] = 2 * sample.meta.sizes[0];
  EXPECT_NE(deriveBatch(cut, microbatches, {{name, drawn(sizes)}}, {}, 1, requestFor)
                .whyNot.find("the file was exported for"),
            std::string::npos);
}

}  // namespace
}  // namespace retrograd

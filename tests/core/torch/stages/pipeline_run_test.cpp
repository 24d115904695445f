// Stages derived and run: the pipeline against the model in one piece.
#include "core/torch/stages/pipeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "core/cut/as_read.h"
#include "core/cut/balance.h"
#include "core/cut/json.h"
#include "core/cut/op_costs.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/torch/checking/pipeline_check.h"
#include "core/torch/checking/suite.h"
#include "core/torch/judging/compare.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/stages/stage_run.h"
#include "tests/core/cut/cut_files.h"
#include "tests/core/cut/text_models.h"
#include "tests/core/formats/cases.h"
#include "tests/support/float_tensor.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

const fs::path sourceFolder(sourcePath(""));

using test::at;
using test::derived;
using test::expectEqual;
using test::opened;
using test::openedText;
using test::refusalOf;

nlohmann::ordered_json golden() {
  std::ifstream stream(sourceFolder / "tests/data/pipeline/golden.json");
  return nlohmann::ordered_json::parse(stream);
}

/// The models with markers: those next to golden.json, and the whole collection where it is there.
std::vector<std::string> markedModels() {
  std::vector<std::string> found;
  const auto expected = golden();
  for (const auto& [name, figures] : expected.items())
    for (const auto& folder : {sourceFolder / "tests/data/pipeline", test::cases() / "pipeline"})
      if (fs::exists(folder / name / "model.pt2")) {
        found.push_back((folder / name / "model.pt2").string());
        break;
      }
  return found;
}

class MarkedModels : public testing::TestWithParam<std::string> {};

// Holds P22, P23, P24, P28, P36, P37 on models that PyTorch's own pipeline() has cut.
TEST_P(MarkedModels, AreCutAsPyTorchCutsThem) {
  const auto name = fs::path(GetParam()).parent_path().filename().string();
  const auto expected = golden().at(name);
  const auto cut = openCut(GetParam(), {}, {}, {}, false);
  const auto json = pipelineJson(cut.model, cut.split, cut.notes);
  ASSERT_EQ(json["stages"].size(), expected["stages"].size());
  ASSERT_EQ(json["edges"].size(), expected["edges"].size());
  for (std::size_t i = 0; i < json["edges"].size(); ++i) {
    const auto &edge = json["edges"][i], &wanted = expected["edges"][i];
    EXPECT_EQ(edge["source"], wanted["src"].is_string() ? nlohmann::ordered_json(-1) : wanted["src"]) << i;
    EXPECT_EQ(edge["output"], wanted["out_idx"]) << i;
    EXPECT_EQ(edge["destination"], wanted["dst"]) << i;
    for (const auto* key : {"name", "dtype", "shape", "bytes"}) EXPECT_EQ(edge[key], wanted[key]) << i << " " << key;
  }
  // P39, P40: PyTorch leaves copies of tied parameters behind that nobody uses, and renames a module's that is called
  // again.
  const std::set<std::pair<std::string, std::size_t>> leftOver{{"shared_2st", 0}, {"gpt4_2st", 0}, {"shared_2st", 2}};
  for (std::size_t s = 0; s < json["stages"].size(); ++s) {
    auto parameters = json["stages"][s]["parameters"].get<std::set<std::string>>();
    const auto wanted = expected["stages"][s]["params"].get<std::set<std::string>>();
    EXPECT_EQ(json["stages"][s]["buffers"], expected["stages"][s]["buffers"]) << s;
    if (!leftOver.contains({name, s})) EXPECT_EQ(parameters, wanted) << s;
    for (const auto& parameter : parameters) EXPECT_TRUE(wanted.contains(parameter)) << s << " " << parameter;
  }
  EXPECT_EQ(json["replicated"].size(), expected["replicated"].size());
}

// Holds P19: asking for a module gives the cuts that its markers give.
TEST(PipelineRun, AModuleThatIsCalledTwiceIsCutAsItsMarkersCutIt) {
  const auto model = (sourceFolder / "tests/data/pipeline/shared_2st/model.pt2").string();
  auto request = at({"l"});
  request.useMarkers = false;
  const auto marked = opened(model).split, asked = opened(model, request).split;
  ASSERT_EQ(asked.stages.size(), 3u);
  for (std::size_t s = 0; s < 3; ++s) EXPECT_EQ(asked.stages[s].ops, marked.stages.at(s).ops) << s;
}

TEST_P(MarkedModels, StagesGiveWhatTheWholeModelGives) {
  const auto report = checkPipeline(GetParam(), {}, {});
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
}

// Weights that are asked for are those of the stages: an infinity in them is found.
TEST(PipelineRun, WeightsThatAreGivenReachTheStages) {
  const auto model = test::writeTemporary("two.txt", R"(
def computation(x, w, v):
    # x: "f32[2]"
    # w: "f32[2]", parameter
    # v: "f32[2]", parameter
    y = aten.mul.Tensor(x, w)
    z = aten.mul.Tensor(y, v)
    loss = aten.sum(z)
    return loss
)");
  CutRequest request;
  request.stages = 2;
  request.balance = Balance::bytes;
  CheckOptions options;
  EXPECT_EQ(test::verdictOf(checkPipeline(model, request, options)), Verdict::pass);
  options.data.weights = test::writeTemporary("weights.safetensors", "");
  const auto infinity = std::numeric_limits<float>::infinity();
  writeSafetensors(options.data.weights,
                   {{"w", test::floatTensor({2}, {1, 2})}, {"v", test::floatTensor({2}, {1, infinity})}}, {});
  const auto report = checkPipeline(model, request, options);
  EXPECT_EQ(test::verdictOf(report), Verdict::fail) << test::textOf(report);
  EXPECT_NE(test::findClaim(report, "not-finite"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Pipeline, MarkedModels, testing::ValuesIn(markedModels()),
                         [](const auto& info) { return fs::path(info.param).parent_path().filename().string(); });

std::vector<SuiteCase> allModels() {
  std::vector<SuiteCase> found;
  for (const auto& folder : {test::data(), test::cases() / "models"})
    if (fs::is_directory(folder))
      for (auto& one : findCases(folder.string())) found.push_back(std::move(one));
  return found;
}

TEST(PipelineRun, ModelsCutByPolicyGiveTheSame) {
  for (std::size_t stages = 2; stages <= 4; ++stages)
    for (const auto& one : allModels()) {
      CutRequest request;
      request.stages = stages;
      request.balance = stages % 2 == 0 ? Balance::bytes : Balance::parameters;
      try {
        const auto report = checkPipeline(one.model, request, one.options);
        EXPECT_EQ(test::verdictOf(report), Verdict::pass) << stages << ": " << test::textOf(report);
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("is the most"), std::string::npos) << error.what();
      }
    }
}

TEST(PipelineRun, DynamicModelsAreCutAtOtherSizes) {
  for (std::size_t stages = 2; stages <= 4; ++stages)
    for (const auto& one : findCases((sourceFolder / "tests/data/dynamic").string())) {
      CutRequest request;
      request.stages = stages;
      request.balance = Balance::estimate;
      try {
        const auto report = checkPipeline(one.model, request, one.options);
        EXPECT_EQ(test::verdictOf(report), Verdict::pass) << stages << ": " << test::textOf(report);
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("is the most"), std::string::npos) << error.what();
      }
    }
}

TEST(PipelineRun, AnOpenModelIsCutAsItsFileIs) {
  for (const auto& one : allModels()) {
    CutRequest request;
    request.stages = 3;
    request.balance = Balance::bytes;
    std::optional<CutModel> cut;
    try {
      cut = openCut(one.model, request, {}, {}, false);
    } catch (const Error&) {
      continue;  // too small, or written all through
    }
    const auto whole = openModel(one.model);
    const auto model = asRead(*whole);
    const auto cuts =
        balancedCuts(*model.document, model.computation, 3, byteCosts(*model.document, model.computation));
    EXPECT_EQ(cuts, cut->cuts) << one.model;
    EXPECT_EQ(pipelineJson(model, splitPipeline(*model.document, model.computation, cuts), {}),
              pipelineJson(cut->model, cut->split, {}))
        << one.model;
  }
}

TEST(PipelineRun, TimeIsEstimatedWithoutARun) {
  const auto whole = openModel((test::data() / "mlp" / "model.pt2").string());
  const auto costs = estimatedCosts(*whole);
  ASSERT_EQ(costs.forward.size(), whole->computation().trace.ops.size());
  for (std::size_t i = 0; i < costs.forward.size(); ++i) {
    EXPECT_GT(costs.forward[i], 0) << i;
    EXPECT_GT(costs.backward[i], 0) << i;
  }
  CutRequest request;
  request.stages = 2;
  request.balance = Balance::estimate;
  EXPECT_EQ(opened((test::data() / "mlp" / "model.pt2").string(), request).split.stages.size(), 2u);
}

// Holds P29, P30: wherever a model is cut, the stages give the same or the cut is refused.
TEST(PipelineRun, NoCutGivesAWrongNumber) {
  std::size_t passed = 0;
  for (const auto& one : findCases(test::data().string())) {
    const auto model = readModel(one.model);
    for (auto op : model.computation.trace.ops) {
      const auto name = model.document->text(model.document->boundSymbol(op).name);
      if (name.empty()) continue;
      try {
        const auto report = checkPipeline(one.model, at({"#" + std::string(name)}), one.options);
        EXPECT_EQ(test::verdictOf(report), Verdict::pass) << name << ": " << test::textOf(report);
        ++passed;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::badUse) << error.what();
      }
    }
  }
  EXPECT_GT(passed, 100u);
}

constexpr const char* skip = R"(
def computation(x, w, u):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    # u: "f32[4, 4]", parameter u
    a = aten.mm(x, w)
    b = aten.tanh(a)
    c = aten.mm(b, u)
    d = aten.add.Tensor(c, a)
    e = aten.mul.Tensor(d, x)
    loss = aten.sum(e)
    return loss
)";

// Holds P23, P49: gradients of a value that several stages use are summed.
// Holds P50: so are those of an input of the model.
TEST(PipelineRun, GradientsAreSummedOverSkipConnections) {
  expectEqual(skip, at({"#b", "#c", "#d", "#e"}));
  auto pipeline = derived(openedText(skip, at({"#b", "#d", "#e"})));
  const auto result = runPipeline(pipeline);
  EXPECT_TRUE(result.gradients.contains("in.x"));
  EXPECT_EQ(pipeline.split.edges.size(), 6u) << "x goes to stages 0 and 3, a to 1 and 2";
}

// Holds P53: each run gives its own gradients, which the caller accumulates.
TEST(PipelineRun, RunsGiveTheSameGradients) {
  const auto pipeline = derived(openedText(skip, at({"#c"})));
  const auto first = runPipeline(pipeline), second = runPipeline(pipeline);
  ASSERT_EQ(first.gradients.size(), 3u);
  for (const auto& [name, gradient] : first.gradients)
    EXPECT_TRUE(identical(gradient, second.gradients.at(name))) << name;
}

// Holds P31: draws come in the same order from one seed.
TEST(PipelineRun, DrawsAreThoseOfTheWholeModel) {
  const char* text = R"(
def computation(x, w):
    # x: "f32[8, 8]"
    # w: "f32[8, 8]", parameter w
    a = aten.dropout(x, 0.5, True)
    b = aten.mm(a, w)
    c = aten.dropout(b, 0.5, True)
    d = aten.tanh(c)
    e = aten.dropout(d, 0.5, True)
    return e
)";
  CheckOptions options;
  options.seed = 7;
  const auto report = expectEqual(text, at({"#b", "#d", "#e"}), options);
  EXPECT_EQ(furthest(report), nullptr);
}

// Holds P37, P38: replicas' gradients add up; transmitted, the parameter has one gradient, in the stage that holds it.
TEST(PipelineRun, SharedParametersReplicatedOrTransmitted) {
  const char* text = R"(
def computation(x, e, o):
    # x: "f32[4, 4]"
    # e: "f32[4, 4]", parameter e.weight, also o.weight
    # o: "f32[4, 4]", parameter o.weight, also e.weight, shares e
    a = aten.mm(x, e)
    b = aten.tanh(a)
    c = aten.mm(b, o)
    d = aten.sin(c)
    f = aten.mm(d, e)
    return f
)";
  auto request = at({"#b", "#d"});
  expectEqual(text, request);
  auto pipeline = derived(openedText(text, request));
  EXPECT_EQ(pipeline.split.shared.size(), 1u);
  for (std::size_t s = 0; s < 3; ++s) EXPECT_EQ(pipeline.stages[s]->file.weights.size(), 1u) << s;
  request.options.multiUse = MultiUse::transmit;
  expectEqual(text, request);
  pipeline = derived(openedText(text, request));
  EXPECT_EQ(pipeline.stages[0]->file.weights.size(), 1u);
  EXPECT_TRUE(pipeline.stages[1]->file.weights.empty());
  EXPECT_TRUE(pipeline.stages[2]->file.weights.empty());
}

// Holds P41: a stage has no copies of its own of what the file holds.
TEST(PipelineRun, StagesBorrowTheFilesWeights) {
  const auto pipeline = derived(opened((sourceFolder / "tests/data/pipeline/shared_2st/model.pt2").string()));
  const auto& whole = pipeline.whole->file.weights;
  EXPECT_EQ(pipeline.stages[0]->file.weights.at("e.weight").data, whole.at("e.weight").data);
  EXPECT_EQ(pipeline.stages[2]->file.weights.at("o.weight").data, whole.at("e.weight").data);
  EXPECT_EQ(pipeline.stages[1]->file.weights.at("l.weight").data, pipeline.stages[2]->file.weights.at("l.weight").data);
}

// Holds P29a, P52: a write to a value that came from an earlier stage keeps its gradient.
TEST(PipelineRun, WritesToReceivedValuesAreDifferentiated) {
  const char* text = R"(
def computation(x, w):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    a = aten.mm(x, w)
    b = aten.mul_.Tensor(a, x)
    c = aten.tanh(a)
    d = aten.add.Tensor(c, b)
    return d, a
)";
  expectEqual(text, at({"#b"}));
  expectEqual(text, at({"#b", "#c", "#d"}));
}

TEST(PipelineRun, BuffersStayWithTheStageThatWritesThem) {
  const char* text = R"(
def computation(m, x):
    # m: "f32[4]", buffer m
    # x: "f32[4]"
    a = aten.sin(x)
    b = aten.add_.Tensor(m, a)
    c = aten.mul.Tensor(a, m)
    d = aten.cos(c)
    e = aten.mul.Tensor(d, m)
    return e
)";
  expectEqual(text, at({"#c", "#e"}));
}

// Holds P28: numbers, integer tensors and booleans cross, and so do conjugate views and values with gaps.
TEST(PipelineRun, AllSortsOfValuesCross) {
  const char* text = R"(
def computation(x, z):
    # x: "f32[4, 6]"
    # z: "c64[3, 3]"
    n = aten.sym_size.int(x, 0)
    v, i = aten.max.dim(x, 1)
    g = aten.gt.Scalar(x, 0)
    s = aten.slice.Tensor(x, 1, 0, 6, 2)
    e = aten.expand(v, [4, 4])
    j = aten._conj(z)
    k = aten.mul.Tensor(j, z)
    q = aten.where.ScalarOther(g, x, 0)
    r = aten.reshape(s, [n, 3])
    t = aten.mm(e, r)
    return t, k, q
)";
  expectEqual(text, at({"#j:after"}));
  expectEqual(text, at({"#e", "#k", "#t"}));
}

// Holds P25: what the model returns of its inputs stays with the caller.
TEST(PipelineRun, ReturnedInputsKeepTheirGradient) {
  const char* text = R"(
def computation(x, w):
    # x: "f32[4]"
    # w: "f32[4]", parameter w
    a = aten.mul.Tensor(x, w)
    b = aten.sin(a)
    return b, x, None, w
)";
  expectEqual(text, at({"#b"}));
}

TEST(PipelineRun, AMarkedFileTakesNoPolicy) {
  CutRequest request;
  request.stages = 2;
  EXPECT_NE(
      refusalOf(std::string(skip).replace(std::string(skip).find("    b ="), 0, "    pippy._pipe_split.default()\n"),
                request)
          .find("Cannot specify both: the file has 1 stage marker"),
      std::string::npos);
  request.at = {"#b"};
  EXPECT_NE(refusalOf(skip, request).find("Cannot specify both points to cut at and a policy"), std::string::npos);
}

// Holds P61: the two halves of a stage's backward give what it gives in one.
TEST(PipelineRun, HalvesOfABackwardGiveItsGradients) {
  const auto pipeline = derived(openedText(skip, at({"#c"})));
  const auto& stage = *pipeline.stages[1];
  const auto forward = runStageForward(stage, {}, seededGenerator(0));
  const auto whole = runStageBackward(stage, *forward.saved, stage.request.cotangents, forward.generator);
  const auto first = runStageInputBackward(stage, *forward.saved, stage.request.cotangents, forward.generator);
  const auto second = runStageWeightBackward(stage, *first.rest);
  auto gradients = first.gradients;
  gradients.insert(second.begin(), second.end());
  EXPECT_EQ(second.size(), 1u);
  ASSERT_EQ(gradients.size(), whole.gradients.size());
  for (const auto& [name, gradient] : whole.gradients) EXPECT_TRUE(identical(gradient, gradients.at(name))) << name;
}

TEST(PipelineRun, WithoutCutsItIsOneStage) {
  const auto cut = openedText(skip);
  EXPECT_EQ(cut.split.stages.size(), 1u);
  ASSERT_EQ(cut.notes.size(), 1u);
  EXPECT_NE(cut.notes[0].find("one stage"), std::string::npos);
}

TEST(PipelineRun, TheTimePolicyMeasures) {
  CutRequest request;
  request.stages = 3;
  EXPECT_EQ(openedText(skip, request).split.stages.size(), 3u);
}

}  // namespace
}  // namespace retrograd

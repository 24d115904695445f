// Statements about what PyTorch's split module is, held of the table of stages and of the stages' own models.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/cut/json.h"
#include "core/derivation/result_names.h"
#include "core/torch/judging/compare.h"
#include "core/torch/stages/open_pipeline.h"
#include "core/torch/stages/pipeline.h"
#include "core/torch/stages/rank_stages.h"
#include "core/torch/stages/stage_run.h"
#include "core/torch/tracing/op_table.h"
#include "tests/core/cut/text_models.h"
#include "tests/core/formats/cases.h"
#include "tests/support/comparison.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

using test::errorOf;

CutModel opened(const std::string& path, const CutRequest& request, const DerivationRequest& options = {}) {
  return openCut(path, request, {}, [&](const ModelFile&) { return options; }, true);
}

CutModel openedText(const std::string& text, const std::vector<std::string>& at) {
  CutRequest request;
  request.at = at;
  return opened(test::writeTemporary("statements.txt", text), request);
}

std::shared_ptr<const Pipeline> derived(const CutModel& cut) {
  return std::make_shared<const Pipeline>(derivePipeline(cut.model, cut.whole, cut.split));
}

void expectGradientsOfTheWhole(const Pipeline& pipeline) {
  const auto found = runPipeline(pipeline).gradients, expected = runJoint(*pipeline.whole).gradients;
  ASSERT_EQ(found.size(), expected.size());
  test::Comparison comparison;
  for (const auto& [name, gradient] : expected) comparison.add(name, found.at(name), gradient);
  EXPECT_LE(comparison.error(), 1e-6) << comparison.worst() << comparison.failure();
}

/// The models with markers that are in the repository, and in the collection where that is there.
std::vector<CutModel> markedModels() {
  std::vector<CutModel> models;
  for (const auto* name : {"mlp_3st", "shared_2st", "unet_skip_3st", "gpt4_2st", "resnet18_3st"})
    for (const auto& folder : {std::filesystem::path(sourcePath("tests/data/pipeline")), test::cases() / "pipeline"})
      if (std::filesystem::exists(folder / name / "model.pt2")) {
        models.push_back(opened((folder / name / "model.pt2").string(), {}));
        break;
      }
  return models;
}

constexpr const char* branches = R"(
def computation(x, w, u):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    # u: "f32[4, 4]", parameter u
    a = aten.mm(x, w)
    v, i = aten.max.dim(a, 1)
    p = aten.sin(a)
    b = aten.cos(p)
    c = aten.mm(b, u)
    d = aten.add.Tensor(c, i)
    e = aten.mul.Tensor(d, a)
    return e, i, None, x
)";

// Holds P21: nothing is computed between the stages. Every op is in one stage, but for markers and what nobody needs.
TEST(PipelineStatements, P21_EveryOpIsInOneStage) {
  const auto models = markedModels();
  ASSERT_GE(models.size(), 2u);
  for (const auto& cut : models) {
    std::map<BoundSymbolId, int> times;
    for (const auto& stage : cut.split.stages)
      for (auto op : stage.ops) ++times[op];
    for (auto op : cut.model.computation.trace.ops)
      EXPECT_EQ(times[op], isStageMarker(*cut.model.document, op) ? 0 : 1)
          << cut.model.path << " " << cut.model.document->opName(op);
  }
}

// Holds P33: all inputs of a stage come before its first op, and every op reads inputs or what is before it.
TEST(PipelineStatements, P33_InputsComeFirst) {
  for (const auto& cut : markedModels())
    for (std::size_t s = 0; s < cut.split.stages.size(); ++s) {
      const auto stage = stageModel(cut.model, cut.split, s, lookupSymbol);
      const auto& trace = stage.file.computation.trace;
      std::set<ValueId> known(trace.inputs.begin(), trace.inputs.end());
      for (auto input : trace.inputs) EXPECT_FALSE(stage.file.document->value(input).producer);
      for (auto op : trace.ops) {
        for (auto operand : stage.file.document->operands(op))
          EXPECT_TRUE(!operand || known.contains(operand)) << cut.model.path << " stage " << s;
        for (auto output : stage.file.document->outputs(op)) known.insert(output);
      }
    }
}

// Holds P34: the pipeline gives what the file's graph returns, flat and in its order, None and returned inputs at their
// places.
TEST(PipelineStatements, P34_ResultsAreThoseOfTheFile) {
  const auto pipeline = derived(openedText(branches, {"#b", "#e"}));
  const auto found = runPipeline(*pipeline), expected = runJoint(*pipeline->whole);
  ASSERT_EQ(found.outputs.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(found.outputs[i].has_value(), expected.outputs[i].has_value()) << i;
    EXPECT_EQ(found.outputs[i].has_value(), i != 2) << i;
    if (found.outputs[i]) EXPECT_TRUE(identical(*found.outputs[i], *expected.outputs[i])) << i;
  }
}

// Holds P44: a stage has each of its parameters under a name of its own, with data.
// Holds P45: and once, however many of its ops use it; what it is sent it is sent once, too.
TEST(PipelineStatements, P44_P45_AStageHoldsEachParameterOnce) {
  for (const auto& cut : markedModels())
    for (std::size_t s = 0; s < cut.split.stages.size(); ++s) {
      const auto stage = stageModel(cut.model, cut.split, s, lookupSymbol);
      std::set<std::string> names;
      for (const auto& input : stage.file.computation.inputs) {
        if (input.kind != InputKind::parameter) continue;
        EXPECT_TRUE(names.insert(input.target).second) << cut.model.path << " stage " << s << " " << input.target;
        EXPECT_TRUE(stage.file.weights.contains(input.target)) << input.target;
      }
      const std::set<std::size_t> held(cut.split.stages[s].held.begin(), cut.split.stages[s].held.end());
      EXPECT_EQ(held.size(), cut.split.stages[s].held.size());
      std::set<ValueId> sent;
      for (const auto& input : cut.split.stages[s].inputs) EXPECT_TRUE(sent.insert(input.value).second);
    }
}

// Holds P44: a stage that has both inputs of a tied parameter knows them by two names, whichever modules use them, so
// that no gradient takes another's place.
TEST(PipelineStatements, P44_TiedParametersOfOneStageKeepTheirNamesApart) {
  const std::string text = R"(
def computation(e, o, x):
    # e: "f32[4, 4]", parameter e.weight, also o.weight
    # o: "f32[4, 4]", parameter o.weight, also e.weight, shares e
    # x: "f32[4, 4]"
    a = aten.mm(x, e)
    # module: MODULE
    b = aten.mm(a, o)
    c = aten.sin(b)
    d = aten.mm(c, e)
    return d
)";
  for (const auto* module : {"e", "o"})
    for (const auto* at : {"#b", "#d"}) {
      const auto cut = openedText(std::string(text).replace(text.find("MODULE"), 6, module), {at});
      const auto pipeline = derived(cut);
      for (std::size_t s = 0; s < 2; ++s) {
        std::vector<std::string> names, told;
        for (const auto& input : pipeline->stages[s]->computation().inputs)
          if (input.kind == InputKind::parameter) names.push_back(input.target);
        for (const auto& parameter : stageParameters(cut.model, cut.split, s)) told.push_back(parameter.name);
        EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size())
            << module << " " << at << " " << s;
        EXPECT_EQ(told, names);
      }
      expectGradientsOfTheWhole(*pipeline);
    }
}

// Holds P47: a stage's backward takes a cotangent for each of its outputs that gets one, None for the others, and gives
// a gradient for each of its inputs that needs one, None for the others, each input once. The value at a place is what
// belongs there: the gradients are those of the whole model.
TEST(PipelineStatements, P47_CotangentsAndGradientsHaveTheirPlaces) {
  const auto pipeline = derived(openedText(branches, {"#b", "#e"}));
  const auto& stage = *pipeline->stages[0];
  const auto& computation = stage.computation();
  const auto& outputs = pipeline->split.stages[0].outputs;
  ASSERT_EQ(computation.outputs.size(), 3u) << "p, i and a leave the first stage";
  ASSERT_EQ(stage.joint.inputs.size(), computation.inputs.size() + computation.outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto name = pipeline->whole->document->displayName(outputs[k].value);
    EXPECT_EQ(static_cast<bool>(stage.joint.inputs[computation.inputs.size() + k]), name != "i") << name;
    EXPECT_EQ(stage.request.cotangents.contains(userOutputPosition(computation, k)), name != "i") << name;
  }
  ASSERT_EQ(stage.backward.outputs.size(), computation.inputs.size());
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    EXPECT_TRUE(stage.backward.outputs[i]) << computation.inputs[i].name;
  const auto& last = *pipeline->stages[2];
  std::vector<std::string> names;
  for (std::size_t i = 0; i < last.computation().inputs.size(); ++i) {
    names.push_back(last.computation().inputs[i].name);
    EXPECT_TRUE(last.backward.outputs[i]) << names.back();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"d", "a"}));
  // The number of the row with the greatest element has no gradient in the stage that is sent it.
  const auto& middle = *pipeline->stages[1];
  for (std::size_t i = 0; i < middle.computation().inputs.size(); ++i)
    EXPECT_EQ(static_cast<bool>(middle.backward.outputs[i]), middle.computation().inputs[i].name != "i")
        << middle.computation().inputs[i].name;
  expectGradientsOfTheWhole(*pipeline);
}

// Holds P52: what a stage receives is differentiated where it needs a gradient, once though two ops read it; what needs
// none passes through.
TEST(PipelineStatements, P52_OnlyWhatNeedsAGradientIsDifferentiated) {
  const auto pipeline = derived(openedText(R"(
def computation(x, w):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    a = aten.mm(x, w)
    q = aten.detach(a)
    i = aten.argmax(a, 1)
    b = aten.mul.Tensor(a, q)
    c = aten.index_select(b, 0, i)
    d = aten.mul.Tensor(c, a)
    return d
)",
                                           {"#b"}));
  const auto& stage = *pipeline->stages[1];
  std::map<std::string, bool> differentiated;
  for (std::size_t k = 0; k < stage.computation().inputs.size(); ++k)
    differentiated[stage.computation().inputs[k].name] = static_cast<bool>(stage.backward.outputs[k]);
  EXPECT_EQ(differentiated, (std::map<std::string, bool>{{"a", true}, {"q", false}, {"i", false}}));
}

TEST(PipelineStatements, P54_AStageThatIsNotThereIsNamed) {
  const auto cut = openedText(branches, {"#b"});
  EXPECT_NE(errorOf([&] { stageModel(cut.model, cut.split, 2, lookupSymbol); }).find("Invalid stage index 2!"),
            std::string::npos);
  EXPECT_TRUE(errorOf([&] { stageModel(cut.model, cut.split, 1, lookupSymbol); }).empty());
}

// Holds P55: inputs are given by name, in any order, and what is not given has its default, the sample; a name that is
// none is refused.
TEST(PipelineStatements, P55_InputsAreGivenByName) {
  const char* text = R"(
def computation(x, y):
    # x: "f32[3]"
    # y: "f32[3]"
    a = aten.sin(x)
    b = aten.sub.Tensor(a, y)
    c = aten.cos(b)
    return c
)";
  const auto path = test::writeTemporary("named.txt", text);
  CutRequest request;
  request.at = {"#b"};
  const auto sample = opened(path, request);
  DerivationRequest options;
  options.inputs["y"] = addTensors(sample.whole->request.inputs.at("x"), sample.whole->request.inputs.at("y"));
  const auto pipeline = derived(opened(path, request, options));
  EXPECT_TRUE(identical(pipeline->stages[1]->request.inputs.at("y"), options.inputs.at("y")));
  EXPECT_TRUE(identical(pipeline->stages[0]->request.inputs.at("x"), sample.whole->request.inputs.at("x")));
  EXPECT_TRUE(identical(*runPipeline(*pipeline).outputs.at(0), *runJoint(*pipeline->whole).outputs.at(0)));
  options.inputs["z"] = sample.whole->request.inputs.at("x");
  EXPECT_NE(errorOf([&] { opened(path, request, options); }).find("input z: the file has no such input"),
            std::string::npos);
}

// Holds P59: what is sent is named by its place among the stage's outputs, whoever uses it first, and an op's results
// are distinguished though one is unused.
TEST(PipelineStatements, P59_SendsGoByOutputNotByUser) {
  const auto pipeline = derived(openedText(R"(
def computation(x):
    # x: "f32[4, 4]"
    v, i = aten.max.dim(x, 1)
    h, k = aten.min.dim(x, 0)
    a = aten.sin(i)
    b = aten.mul.Tensor(h, a)
    c = aten.add.Tensor(b, h)
    d = aten.mul.Tensor(c, i)
    return d
)",
                                           {"#a", "#b", "#d"}));
  const auto& document = *pipeline->whole->document;
  const auto& outputs = pipeline->split.stages[0].outputs;
  ASSERT_EQ(outputs.size(), 2u);
  RankStages runner(rotatedMicrobatches(pipeline, 1));
  const auto sent = runner.forward(0, 0, {});
  ASSERT_EQ(sent.size(), 3u) << "i to stages 1 and 3, h to stage 2";
  const auto expect = [&](std::int32_t destination, const std::string& name, DType dtype) {
    ASSERT_EQ(sent.at(destination).size(), 1u);
    const auto& [output, tensor] = *sent.at(destination).begin();
    EXPECT_EQ(document.displayName(outputs.at(std::stoul(output)).value), name);
    EXPECT_EQ(tensor.meta.dtype, dtype);
  };
  expect(1, "i", DType::i64);
  expect(2, "h", DType::f32);
  expect(3, "i", DType::i64);
  EXPECT_TRUE(identical(*runPipeline(*pipeline).outputs.at(0), *runJoint(*pipeline->whole).outputs.at(0)));
}

/// Stages derived for devices of their own, and their ops that name one, as text.
std::string opsOn(const Pipeline& pipeline, std::size_t s) {
  std::string text;
  const auto& stage = *pipeline.stages.at(s);
  for (const auto* trace : {&stage.forward, &stage.backward})
    for (auto op : trace->ops)
      for (auto output : stage.document->outputs(op))
        if (output && stage.document->isTensor(output)) text += toString(stage.document->meta(output).device) + " ";
  return text;
}

// Holds P32: device literals, given by keyword or by position, are those of the stage, and so is all that it computes,
// forward and backward.
TEST(PipelineStatements, P32_EachStageHasADeviceOfItsOwn) {
  const auto path = test::writeTemporary("devices.txt", R"(
def computation(x, w):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    a = aten.mm(x, w)
    b = aten.full([4, 4], 2, device=torch.device("cpu"), pin_memory=False)
    c = aten.mul.Tensor(a, b)
    d = aten.to.device(c, torch.device("cpu"), torch.float32)
    e = aten.full([4, 4], 3, device=torch.device("cpu"), pin_memory=False)
    f = aten.mul.Tensor(d, e)
    return f
)");
  CutRequest request;
  request.at = {"#d"};
  request.options.devices = {Device{Device::Type::cpu, -1}, Device{Device::Type::cuda, 1}};
  const auto cut = opened(path, request);
  const auto pipeline = derived(cut);
  EXPECT_EQ(opsOn(*pipeline, 0).find("cuda"), std::string::npos);
  EXPECT_EQ(opsOn(*pipeline, 1).find("cpu"), std::string::npos) << opsOn(*pipeline, 1);
  EXPECT_NE(opsOn(*pipeline, 1).find("cuda:1"), std::string::npos);
  EXPECT_EQ(toString(pipeline->stages[1]->device), "cuda:1");
  std::size_t literals = 0;
  const auto& document = *pipeline->stages[1]->document;
  for (auto op : pipeline->stages[1]->computation().trace.ops)
    for (const auto& argument : document.pattern(document.boundSymbol(op).pattern).arguments)
      if (argument.kind == Argument::Kind::device) {
        ++literals;
        EXPECT_EQ(argument.text, "cuda:1");
      }
  EXPECT_EQ(literals, 2u) << "one by position, one by keyword";
  request.options.devices.push_back(Device());
  EXPECT_NE(errorOf([&] { opened(path, request); }).find("3 devices are given for 2 stages"), std::string::npos);
}

}  // namespace
}  // namespace retrograd

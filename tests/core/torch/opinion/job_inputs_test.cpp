#include "core/torch/opinion/job_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "tests/core/formats/cases.h"
#include "tests/core/torch/opinion/sample_job.h"

namespace retrograd {
namespace {

/// One compile of a log that is written here.
struct WrittenCompile {
  int frame = 0;
  std::string function;
  std::vector<std::pair<std::string, std::string>> sources;  ///< by input: its source and its sizes, "[4, 3]"
  std::string dynamoOutputs;                                 ///< "(h, mean)"
  std::string dynamoBody;
  std::string forward, backward;
};

std::string placeholderOf(const std::string& source) {
  std::string name;
  for (const char c : source) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
    else if (!name.ends_with('_')) name += '_';
  }
  return name;
}

std::string logOf(const std::vector<WrittenCompile>& compiles) {
  std::string log;
  int id = 0;
  for (const auto& compile : compiles) {
    const auto ids = fmt::format(R"("frame_id": {}, "frame_compile_id": 0, "attempt": 0)", compile.frame);
    const auto plain = [&](const std::string& json) {
      log += fmt::format("V1122 08:20:21.133000 77 a/b.py:18] {{{}, {}}}\n", json, ids);
    };
    const auto graph = [&](const std::string& name, const std::string& text) {
      log +=
          fmt::format("V1122 08:20:21.133000 77 a/b.py:18] {{\"{}\": {{}}, {}, \"has_payload\": \"\"}}\n", name, ids);
      for (std::size_t at = 0; at <= text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        log.append("\t").append(text.substr(at, end - at)).append("\n");
        at = end + 1;
      }
    };
    plain(
        fmt::format(R"("dynamo_start": {{"stack": [{{"line": 3, "name": "{}", "filename": 0}}]}})", compile.function));
    std::string parameters, copies;
    for (const auto& [source, sizes] : compile.sources) {
      plain(fmt::format(
          R"("describe_tensor": {{"id": {}, "describer_id": 0, "dtype": "torch.float32", "size": {}, "requires_grad": true}})",
          id, sizes));
      plain(fmt::format(R"("describe_source": {{"id": {}, "describer_id": 0, "source": "{}"}})", id++, source));
      parameters += fmt::format(", {}: \"f32{}\"", placeholderOf(source), sizes);
      copies += fmt::format("        i{0} = {0}\n", placeholderOf(source));
    }
    graph("dynamo_output_graph",
          fmt::format("class GraphModule(torch.nn.Module):\n    def forward(self{}):\n{}{}        "
                      "return {}",
                      parameters, copies, compile.dynamoBody, compile.dynamoOutputs));
    graph("aot_forward_graph", compile.forward);
    graph("aot_backward_graph", compile.backward);
  }
  return log;
}

// y = tanh(x * w)
const std::string tanhForward = R"py(class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4][1]cpu", primals_2: "f32[4][1]cpu"):
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(primals_1, primals_2)
        tanh: "f32[4][1]cpu" = torch.ops.aten.tanh.default(mul);  mul = None
        return (tanh, primals_1, primals_2, tanh)
)py";
const std::string tanhBackward = R"py(class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4][1]cpu", primals_2: "f32[4][1]cpu", tanh: "f32[4][1]cpu", tangents_1: "f32[4][1]cpu"):
        tanh_backward: "f32[4][1]cpu" = torch.ops.aten.tanh_backward.default(tangents_1, tanh)
        mul_1: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(tanh_backward, primals_2)
        mul_2: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(tanh_backward, primals_1)
        return (mul_1, mul_2)
)py";
// loss = sum(h * h)
const std::string squareForward = R"py(class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4][1]cpu"):
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(primals_1, primals_1)
        sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(mul)
        return (sum_1, primals_1)
)py";
const std::string squareBackward = R"py(class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4][1]cpu", tangents_1: "f32[][]cpu"):
        expand: "f32[4][0]cpu" = torch.ops.aten.expand.default(tangents_1, [4])
        mul_1: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(expand, primals_1)
        mul_2: "f32[4][1]cpu" = torch.ops.aten.mul.Scalar(mul_1, 2)
        return (mul_2,)
)py";

WrittenCompile tanhOf(const std::string& x, const std::string& w) {
  return {0,
          "f",
          {{x, "[4]"}, {w, "[4]"}},
          "(h,)",
          "        h: \"f32[4]\" = torch.tanh(i" + placeholderOf(x) + ")\n",
          tanhForward,
          tanhBackward};
}
WrittenCompile squareOf(const std::string& source) {
  return {1,
          "torch_dynamo_resume_in_f_at_9",
          {{source, "[4]"}},
          "(i" + placeholderOf(source) + ",)",
          "",
          squareForward,
          squareBackward};
}

TensorData vectorOf(std::vector<float> values) {
  const auto memory = std::make_shared<std::vector<float>>(std::move(values));
  TensorData tensor;
  tensor.meta.sizes = {static_cast<std::int64_t>(memory->size())};
  tensor.meta.strides = {1};
  tensor.data = reinterpret_cast<const std::byte*>(memory->data());
  tensor.bytes = memory->size() * sizeof(float);
  tensor.owner = memory;
  return tensor;
}

SecondOpinion opinionOn(const std::vector<WrittenCompile>& compiles, const std::string& compile = {},
                        const std::vector<std::string>& weights = {"w"}) {
  SecondOpinionRequest request;
  request.compile = compile;
  for (const auto& name : weights) request.weights.emplace(name, vectorOf({1, 2, 3, 4}));
  request.batch.emplace("x", vectorOf({0.1F, -0.2F, 0.3F, 0.4F}));
  return secondOpinion(jobs::openJobLog(test::writeTemporary("inputs.log", logOf(compiles))), request);
}

std::string noteWith(const SecondOpinion& opinion, const std::string& part) {
  for (const auto& note : opinion.report.notes)
    if (note.find(part) != std::string::npos) return note;
  return {};
}

// A functools.partial with keyword inputs, an object that holds the module, a dataclass of inputs.
TEST(JobInputs, AreBoundWhateverHeldThem) {
  for (const auto& [x, w] :
       std::vector<std::pair<std::string, std::string>>{{"L['kwargs']['x']", "L['args'][0]._parameters['w']"},
                                                        {"L['batch'].x", "L['self'].model._parameters['w']"},
                                                        {"L['x']", "L['step'].keywords['m']._parameters['w']"}}) {
    const auto opinion = opinionOn({tanhOf(x, w)});
    EXPECT_EQ(verdictOf(opinion), Verdict::pass) << x << ", " << w << ": " << reasonOf(opinion);
    EXPECT_EQ(opinion.drawn, 0U);
    EXPECT_EQ(opinion.report.judged, 2U);
  }
}

// A place in *args has no name; the only tensor of its type is meant, and that is said.
TEST(JobInputs, APlaceInAListIsFoundByItsType) {
  const auto opinion = opinionOn({tanhOf("L['a'][0]", "L['m']._parameters['w']")});
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(noteWith(opinion, "taken to be"), "a.0 f32[4] is taken to be x, the only one of this type in the batch");
}

// What an earlier graph of the same function gave is computed from it, not asked for.
TEST(JobInputs, WhatAnEarlierGraphGaveIsComputed) {
  const std::vector<WrittenCompile> compiles{tanhOf("L['x']", "L['m']._parameters['w']"), squareOf("L['h']")};
  auto opinion = opinionOn(compiles, "1/0");
  ASSERT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.drawn, 0U);
  EXPECT_EQ(noteWith(opinion, "compile 0/0"), "h f32[4] is what compile 0/0 gives");
  const auto* values = reinterpret_cast<const float*>(opinion.imported.at("primals_1").data);
  EXPECT_NEAR(values[2], 2 * std::tanh(0.9), 1e-6);  // 2 h
  EXPECT_THROW(opinionOn({compiles[0], squareOf("L['other']")}, "1/0"), Error);
}

// "h, other = f(x)" leaves no name of a variable in the graph; the only part of the type is meant.
TEST(JobInputs, APartThatAnEarlierGraphGaveIsComputed) {
  auto parts = tanhOf("L['x']", "L['m']._parameters['w']");
  parts.dynamoBody = "        f = torch.f(iL_x_)\n        getitem: \"f32[4]\" = f[0]\n";
  parts.dynamoOutputs = "(getitem,)";
  auto opinion = opinionOn({parts, squareOf("L['h']")}, "1/0");
  ASSERT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(noteWith(opinion, "compile 0/0"), "h f32[4] is what compile 0/0 gives");
  parts.dynamoBody += "        getitem_1: \"f32[4]\" = f[1]\n";
  parts.dynamoOutputs = "(getitem, getitem_1)";
  EXPECT_THROW(opinionOn({parts, squareOf("L['h']")}, "1/0"), Error);
}

// What eager code made between two graphs is in no file: it is drawn, and said.
TEST(JobInputs, WhatEagerCodeMadeBetweenGraphsIsDrawn) {
  auto resumed = squareOf("L['___stack1']");
  resumed.function = "torch_dynamo_resume_in_g_at_9";  // of a function that no graph is from
  const auto opinion = opinionOn({tanhOf("L['x']", "L['m']._parameters['w']"), resumed}, "1/0");
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << reasonOf(opinion);
  EXPECT_EQ(opinion.drawn, 1U);
  EXPECT_NE(noteWith(opinion, "___stack1 f32[4] is drawn"), "");
  // A part of a tuple, as an LSTM that runs between two graphs gives one.
  resumed = squareOf("L['___stack0'][0]");
  resumed.function = "torch_dynamo_resume_in_g_at_9";
  const auto ofPart = opinionOn({tanhOf("L['x']", "L['m']._parameters['w']"), resumed}, "1/0");
  EXPECT_EQ(verdictOf(ofPart), Verdict::pass) << reasonOf(ofPart);
  EXPECT_NE(noteWith(ofPart, "___stack0.0 f32[4] is drawn"), "");
}

// A block that was compiled by itself has names that each block of the checkpoint has: the way out is named.
TEST(JobInputs, ABlockCompiledByItselfNamesTheWayOut) {
  try {
    opinionOn({tanhOf("L['x']", "L['self']._parameters['w']")}, {}, {"blocks.0.w", "blocks.1.w"});
    FAIL() << "bound";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the weights have w below blocks.0, blocks.1: --weights-under blocks.0"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace retrograd

// What is recorded of a TorchScript module: ops, names, places, inputs, effects.
#include "core/formats/read/read_file.h"
#include "core/torch/torchscript/trace_torchscript.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/trace/source.h"
#include "core/trace/verifier.h"
#include "tests/core/torch/torchscript/script_files.h"

namespace retrograd {
namespace {

using test::traceFile;

std::vector<std::string> opsOf(const ModelFile& file) {
  std::vector<std::string> names;
  for (const auto op : file.computation.trace.ops) names.push_back(file.document->symbol(op).name);
  return names;
}

BoundSymbolId firstOp(const ModelFile& file, std::string_view name, std::size_t skip = 0) {
  for (const auto op : file.computation.trace.ops)
    if (file.document->symbol(op).name == name && skip-- == 0) return op;
  return {};
}

const InputSpec* inputCalled(const ModelFile& file, std::string_view target) {
  for (const auto& input : file.computation.inputs)
    if (input.target == target || input.name == target) return &input;
  return nullptr;
}

std::string failure(const std::string& name, TraceInputs inputs, ErrorCode code = ErrorCode::badUse) {
  try {
    traceTorchScript(openModelArchive(test::scriptFile(name)), inputs);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "nothing failed";
}

void expectMentions(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(TorchScript, recordsOpsAsTheyAreInTheFile) {
  EXPECT_EQ(opsOf(traceFile("tied")), (std::vector<std::string>{"aten.embedding.default", "aten.linear.default"}));
  EXPECT_EQ(opsOf(traceFile("batchnorm")), (std::vector<std::string>{"aten.conv1d.default", "aten.add_.Scalar",
                                                                     "aten.batch_norm.default", "aten.relu_.default"}));
}

TEST(TorchScript, givesModulePathsAndSourceLines) {
  const auto file = traceFile("nested");
  const auto& document = *file.document;
  const auto& gelu = document.boundSymbol(firstOp(file, "aten.gelu.default", 1));
  EXPECT_EQ(document.text(gelu.module), "blocks.1.mlp.1");
  const auto& stack = document.source(gelu.source);
  ASSERT_GE(stack.size(), 3u);
  EXPECT_EQ(stack.front().code, "x = block(x)");
  EXPECT_EQ(stack.front().function, "forward");
  ASSERT_NE(shownFrame(stack), nullptr);
  EXPECT_EQ(shownFrame(stack)->file, "make.py");
  EXPECT_EQ(shownFrame(stack)->code, "return x + self.mlp(self.norm(x))");
}

TEST(TorchScript, givesTheStackAtTheTimeOfTracing) {
  const auto file = traceFile("traced");
  const auto& document = *file.document;
  const auto& linear = document.boundSymbol(firstOp(file, "aten.linear.default"));
  EXPECT_EQ(document.text(linear.module), "body.0");
  const auto& stack = document.source(linear.source);
  ASSERT_FALSE(stack.empty());
  EXPECT_EQ(stack.front().file, "make.py");
  EXPECT_EQ(stack.front().function, "forward");
  EXPECT_EQ(stack.back().file, "site-packages/torch/nn/modules/linear.py");
}

TEST(TorchScript, namesParametersBuffersAndPlainTensors) {
  const auto file = traceFile("nested");
  const auto* weight = inputCalled(file, "blocks.0.mlp.2.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->kind, InputKind::parameter);
  EXPECT_TRUE(weight->requiresGrad);
  const auto* scale = inputCalled(file, "scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->kind, InputKind::constant);
  EXPECT_TRUE(file.constants.contains("scale"));
  const auto frozen = traceFile("nograd");
  EXPECT_FALSE(inputCalled(frozen, "b.weight")->requiresGrad);
  EXPECT_TRUE(inputCalled(frozen, "b.bias")->requiresGrad);
  EXPECT_EQ(inputCalled(traceFile("batchnorm"), "1.running_mean")->kind, InputKind::buffer);
}

TEST(TorchScript, aTiedParameterIsOneInputWithTwoNames) {
  const auto file = traceFile("tied");
  const auto* weight = inputCalled(file, "embed.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->aliases, std::vector<std::string>{"out.weight"});
  EXPECT_EQ(inputCalled(file, "out.weight"), nullptr);
  const auto linear = firstOp(file, "aten.linear.default");
  EXPECT_EQ(file.document->operands(linear)[1], weight->value);
}

TEST(TorchScript, whatRunsWithoutGradIsMarked) {
  const auto file = traceFile("nograd");
  EXPECT_FALSE(file.document->boundSymbol(firstOp(file, "aten.linear.default", 0)).gradMode);
  EXPECT_TRUE(file.document->boundSymbol(firstOp(file, "aten.linear.default", 1)).gradMode);
}

TEST(TorchScript, randomOpsAreRecordedAndNotFrozen) {
  const auto file = traceFile("dropout");
  const auto drop = firstOp(file, "aten.dropout.default");
  ASSERT_TRUE(drop);
  EXPECT_TRUE(file.document->boundSymbol(drop).effects & effect::random);
  EXPECT_TRUE(file.document->boundSymbol(firstOp(file, "aten.rand_like.default")).effects & effect::random);
  EXPECT_TRUE(file.dataDependent.empty());
}

TEST(TorchScript, writesStayAndAssignedBuffersAreOutputs) {
  const auto file = traceFile("inplace");
  EXPECT_TRUE(file.document
                  ->boundSymbol(firstOp(file, "aten.mul_.Tensor", 0) ? firstOp(file, "aten.mul_.Tensor")
                                                                     : firstOp(file, "aten.mul_.Scalar"))
                  .effects &
              effect::writes);
  const auto& last = file.computation.outputs.back();
  EXPECT_EQ(last.kind, OutputKind::bufferMutation);
  EXPECT_EQ(last.target, "last");
  // The weights are those of the file, not what the run has made of them.
  const auto& total = file.weights.at("total");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(reinterpret_cast<const float*>(total.data)[i], 0.f);
}

TEST(TorchScript, saysWhereDataDecided) {
  const auto file = traceFile("control");
  ASSERT_EQ(file.dataDependent.size(), 1u);
  expectMentions(file.dataDependent[0], {"aten.item.default", "make.py:"});
  EXPECT_TRUE(traceFile("traced").dataDependent.empty());  // sizes are not data
}

TEST(TorchScript, controlFlowFollowsTheInputs) {
  auto inputs = test::inputsOf("control");
  const auto archive = openModelArchive(test::scriptFile("control"));
  inputs.tensors.erase("rounds");
  inputs.numbers["rounds"] = Argument::ofInt(1);
  const auto once = traceTorchScript(archive, inputs);
  inputs.numbers["rounds"] = Argument::ofInt(2);
  const auto twice = traceTorchScript(archive, inputs);
  const auto linears = [](const ModelFile& file) {
    const auto ops = opsOf(file);
    return std::count(ops.begin(), ops.end(), "aten.linear.default");
  };
  EXPECT_EQ(linears(once), 2);
  EXPECT_EQ(linears(twice), 4);
  EXPECT_EQ(once.sampleNumbers.at("rounds"), Argument::ofInt(1));
}

TEST(TorchScript, flattensContainersWithNames) {
  const auto file = traceFile("containers");
  std::vector<std::string> inputs, outputs;
  for (const auto& input : file.computation.inputs)
    if (input.kind == InputKind::user) inputs.push_back(input.name);
  for (const auto& output : file.computation.outputs) outputs.push_back(output.target);
  EXPECT_EQ(inputs, (std::vector<std::string>{"xs.0", "xs.1", "batch.ids", "t.0", "t.1.0", "t.1.1"}));
  EXPECT_EQ(outputs, (std::vector<std::string>{"0.first", "0.second", "1.x0", "1.x1", "2.0", "2.1", "3"}));
  EXPECT_EQ(file.computation.outputs.back().literal, Argument::ofInt(2));
}

TEST(TorchScript, everyTraceVerifies) {
  for (const char* name :
       {"control", "traced", "dropout", "inplace", "batchnorm", "containers", "nested", "tied", "nograd"}) {
    const auto file = traceFile(name);
    EXPECT_TRUE(file.traced);
    for (const auto& problem : verify(*file.document, file.computation.trace))
      ADD_FAILURE() << name << ": " << problem.place << ": " << problem.message;
  }
}

TEST(TorchScript, missingInputsAreListedWithTheirTypes) {
  expectMentions(failure("containers", {}), {"xs.0, xs.1, ...: Tensor", "batch.KEY: Tensor", "t.0: Tensor",
                                             "t.1.1: int", "--shape", "--inputs", "--value t.1.1=1"});
  expectMentions(failure("control", {}), {"x: Tensor"});
  EXPECT_EQ(failure("control", {}).find("rounds"), std::string::npos);  // it has a default
}

TEST(TorchScript, drawsInputsInTheShapeAskedForOrTracedWith) {
  TraceInputs inputs;
  inputs.shapes["x"] = {{5, 3}, std::nullopt};
  const auto file = traceTorchScript(openModelArchive(test::scriptFile("control")), inputs);
  EXPECT_EQ(file.sampleInputs.at("x").meta.sizes, (std::vector<std::int64_t>{5, 3}));
  EXPECT_EQ(file.sampleInputs.at("x").meta.dtype, DType::f32);
  const auto traced = traceTorchScript(openModelArchive(test::scriptFile("traced")), {});
  EXPECT_EQ(traced.sampleInputs.at("x").meta.sizes, (std::vector<std::int64_t>{4, 4}));
  expectMentions(traced.inputSource.at("x"), {"drawn from seed 0", "traced with"});
}

TEST(TorchScript, refusesInputsThatDoNotFit) {
  TraceInputs inputs;
  inputs.shapes["x"] = {{5, 3}, std::nullopt};
  inputs.shapes["z"] = {{1}, std::nullopt};
  expectMentions(failure("control", inputs), {"input z", "x"});
  inputs.shapes.erase("z");
  inputs.numbers["rounds"] = Argument::ofReal(1.5);
  expectMentions(failure("control", inputs), {"input rounds", "int"});
  inputs.numbers.clear();
  inputs.shapes["x"] = {{5, 4}, std::nullopt};
  expectMentions(failure("control", inputs, ErrorCode::execution), {"aten::linear", "make.py:"});
}

TEST(TorchScript, stopsBetweenOpsWhenAsked) {
  const auto endless = test::archiveOf(test::replaced("control", "code/__torch__.py",
                                                      "_0, x0, done = torch.lt(done0, rounds), x1, done0",
                                                      "_0, x0, done = True, x1, done0"));
  std::stop_source stop;
  std::jthread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop.request_stop();
  });
  try {
    traceTorchScript(endless, test::inputsOf("control"), Progress(stop.get_token(), {}));
    FAIL() << "it ended";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled) << e.what();
  }
}

TEST(TorchScript, showsWhatTheModelRaises) {
  const auto archive = test::archiveOf(test::replaced(
      "tied", "code/__torch__.py", "    embed = self.embed\n",
      "    ops.prim.RaiseException(\"no such luck\", \"builtins.ValueError\")\n    embed = self.embed\n"));
  try {
    traceTorchScript(archive, test::inputsOf("tied"));
    FAIL() << "nothing was raised";
  } catch (const Error& e) {
    expectMentions(e.what(), {"the model raises: no such luck", "prim::RaiseException"});
  }
}

}  // namespace
}  // namespace retrograd

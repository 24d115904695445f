// Deriving for a GPU that is not there: hollow tensors claim it.
#include <ATen/Context.h>
#include <ATen/ops/allclose.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/derivation/analysis.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/session/session.h"
#include "tests/core/formats/cases.h"
#include "tests/support/model_builder.h"
#include "tests/support/open_model.h"

namespace retrograd::test {
namespace {

const Device cuda{Device::Type::cuda, 0};

DerivationRequest onCuda() {
  DerivationRequest options;
  options.device = cuda;
  return options;
}

bool namesCpu(const Argument& argument) {
  if (argument.kind == Argument::Kind::device) return argument.text == "cpu";
  return std::any_of(argument.items.begin(), argument.items.end(), namesCpu);
}

/// Every tensor that an op makes is on the GPU, and no op hears of the CPU. Literals of formulas may be on the CPU,
/// as in LibTorch.
void expectOnCuda(const Analysis& analysis) {
  const auto& document = *analysis.document;
  for (const auto* trace : {&analysis.computation().trace, &analysis.joint, &analysis.forward, &analysis.backward})
    for (auto op : trace->ops) {
      for (const auto& argument : document.pattern(document.boundSymbol(op).pattern).arguments)
        EXPECT_FALSE(namesCpu(argument)) << document.opName(op) << " is told of the CPU";
      for (auto output : document.outputs(op))
        if (output && document.isTensor(output) && !document.meta(output).wrappedNumber)
          EXPECT_EQ(document.meta(output).device, cuda) << document.opName(op);
    }
}

void expectDerives(const std::string& path) {
  SCOPED_TRACE(path);
  const auto analysis = openModel(path, onCuda());
  for (const auto& p : analysis->problems)
    EXPECT_NE(p.severity, Problem::Severity::error) << p.place << ": " << p.message;
  ASSERT_TRUE(analysis->derived());
  expectOnCuda(*analysis);
  const auto cpu = openModel(path);
  EXPECT_EQ(analysis->computation().trace.ops.size(), cpu->computation().trace.ops.size());
  EXPECT_EQ(analysis->forward.inputs.size(), cpu->forward.inputs.size());
  // A gradient for what has one on the CPU, and for nothing else.
  ASSERT_EQ(analysis->joint.outputs.size(), cpu->joint.outputs.size());
  for (std::size_t i = 0; i < cpu->joint.outputs.size(); ++i)
    EXPECT_EQ(analysis->joint.outputs[i].valid(), cpu->joint.outputs[i].valid()) << "output " << i;
}

TEST(HollowCuda, modelsKeptWithTheTestsDerive) {
  const auto files = filesBelow(data(), ".pt2");
  ASSERT_FALSE(files.empty());
  for (const auto& path : files) expectDerives(path);
}

TEST(HollowCuda, everyCaseDerives) {
  const auto files = filesBelow(cases() / "models", ".pt2");
  if (files.empty()) GTEST_SKIP() << "no cases beside this checkout";
  for (const auto& path : files) expectDerives(path);
}

/// A recurrent layer of one direction: (input, [states], [weights], has_biases, layers, dropout, train, bidirectional,
/// batch_first)
std::shared_ptr<const Analysis> recurrent(const std::string& op, std::int64_t gates, bool listOfStates) {
  ModelBuilder m;
  const auto x = m.input("x", {4, 2, 8});
  const auto h = m.input("h", {1, 2, 16});
  const auto c = listOfStates ? m.input("c", {1, 2, 16}) : ValueId();
  const std::vector<ValueId> weights{m.parameter("w", {gates * 16, 8}), m.parameter("u", {gates * 16, 16}),
                                     m.parameter("b", {gates * 16}), m.parameter("v", {gates * 16})};
  const ModelBuilder::Arg states = listOfStates ? ModelBuilder::Arg(std::vector<ValueId>{h, c}) : ModelBuilder::Arg(h);
  const auto no = Argument::ofBool(false), yes = Argument::ofBool(true);
  m.output(m.multi(op, {x, states, weights, yes, 1, 0.0, yes, no, no}, listOfStates ? 3 : 2)[0]);
  return m.analyse(onCuda());
}

// The cells are LibTorch's own fused ones, which have kernels on a GPU alone, where cuDNN is there, too.
TEST(HollowCuda, fusedCellsOfLstmAndGruHaveShapes) {
  for (const bool lstm : {true, false}) {
    const auto analysis = recurrent(lstm ? "aten.lstm.input" : "aten.gru.input", lstm ? 4 : 3, lstm);
    for (const auto& p : analysis->problems)
      EXPECT_NE(p.severity, Problem::Severity::error) << p.place << ": " << p.message;
    ASSERT_TRUE(analysis->derived());
    expectOnCuda(*analysis);
    const std::string cell = lstm ? "_thnn_fused_lstm_cell" : "_thnn_fused_gru_cell";
    const auto forward = opNames(*analysis, analysis->forward), backward = opNames(*analysis, analysis->backward);
    EXPECT_NE(forward.find(cell), std::string::npos) << forward;
    EXPECT_NE(backward.find(cell + "_backward"), std::string::npos) << backward;
    for (auto gradient :
         std::vector(analysis->joint.outputs.begin() + static_cast<std::ptrdiff_t>(analysis->joint.resultCount),
                     analysis->joint.outputs.end()))
      EXPECT_TRUE(gradient.valid());
  }
}

bool cudnnWasOn = false;

/// Whether cuDNN may be taken while the op of this name runs.
void lookAtCudnn(const char* op, const std::function<void()>& body) {
  static std::string watched;
  watched = op;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        if (watched == function.name()) cudnnWasOn = at::globalContext().userEnabledCuDNN();
        return nullptr;
      }));
  body();
  at::removeCallback(handle);
}

// What cuDNN would be asked for, whether the weights are one block, no trace can hold: "set_.source_Storage".
TEST(HollowCuda, RecurrentLayersAreDerivedWithoutCudnn) {
  struct Layer {
    const char *op, *called;
    std::int64_t gates;
    bool listOfStates;
  };
  for (const auto& layer : {Layer{"aten.lstm.input", "aten::lstm", 4, true},
                            {"aten.gru.input", "aten::gru", 3, false},
                            {"aten.rnn_tanh.input", "aten::rnn_tanh", 1, false},
                            {"aten.rnn_relu.input", "aten::rnn_relu", 1, false}}) {
    cudnnWasOn = true;
    lookAtCudnn(layer.called, [&] {
      const auto analysis = recurrent(layer.op, layer.gates, layer.listOfStates);
      EXPECT_TRUE(analysis->derived());
      expectOnCuda(*analysis);
    });
    EXPECT_FALSE(cudnnWasOn) << layer.op;
    EXPECT_TRUE(at::globalContext().userEnabledCuDNN()) << "other ops";
  }
}

/// Attention of the CPU's fused kernel, with a view that its layout allows.
std::shared_ptr<const Analysis> attentionOfTheCpu(const DerivationRequest& request, bool isCausal) {
  ModelBuilder m;
  const auto q = m.op("aten.transpose.int", {m.input("q", {2, 5, 3, 8}), 1, 2});
  const auto k = m.input("k", {2, 3, 5, 8}), v = m.input("v", {2, 3, 5, 8});
  const auto output = m.multi("aten._scaled_dot_product_flash_attention_for_cpu.default",
                              {q, k, v, 0.0, Argument::ofBool(isCausal)}, 2)[0];
  m.output(m.op("aten.view.default", {m.op("aten.transpose.int", {output, 1, 2}), ModelBuilder::list({2, 5, 24})}));
  return m.analyse(request);
}

/// Outputs and gradients of the joint, run on the CPU whatever it says.
std::vector<at::Tensor> runOnCpu(const Analysis& analysis) {
  Evaluator evaluator(*analysis.document, analysis.request.seed, c10::Device(c10::kCPU));
  for (auto& [id, value] : inputValues(analysis, Device())) evaluator.bind(id, value);
  const auto& inputs = analysis.joint.inputs;
  for (std::size_t i = analysis.computation().inputs.size(), k = 0; i < inputs.size(); ++i, ++k)
    if (inputs[i]) evaluator.bind(inputs[i], borrowTensor(analysis.request.cotangents.at(std::to_string(k))));
  for (const auto op : analysis.joint.ops) evaluator.run(op);
  std::vector<at::Tensor> results;
  for (const auto id : analysis.joint.outputs)
    if (id) results.push_back(evaluator.tensor(id).contiguous());
  return results;
}

TEST(HollowCuda, AttentionOfTheCpuIsComputedByItsFormulaOnAGpu) {
  for (const bool isCausal : {false, true}) {
    const auto onGpu = attentionOfTheCpu(onCuda(), isCausal), onCpu = attentionOfTheCpu({}, isCausal);
    ASSERT_TRUE(onGpu->derived()) << (onGpu->problems.empty() ? "" : onGpu->problems.back().message);
    EXPECT_EQ(opNames(*onGpu, onGpu->joint).find("_for_cpu"), std::string::npos) << opNames(*onGpu, onGpu->joint);
    const auto ours = runOnCpu(*onGpu), kernels = runOnCpu(*onCpu);
    ASSERT_EQ(ours.size(), kernels.size());
    for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(at::allclose(ours[i], kernels[i], 1e-4, 1e-5)) << i;
  }
}

/// Gradients have the shapes of what they are gradients of.
void expectGradientShapes(const Analysis& analysis) {
  const auto& document = *analysis.document;
  for (std::size_t i = 0; i < analysis.computation().trace.inputs.size(); ++i) {
    const auto gradient = analysis.joint.outputs.at(analysis.joint.resultCount + i);
    if (!gradient) continue;
    EXPECT_EQ(document.meta(gradient).sizes, document.meta(analysis.computation().trace.inputs[i]).sizes);
  }
}

TEST(HollowCuda, attentionTakesAKernelOfTheGpuWhereOneFits) {
  for (const std::int64_t width : {16, 15}) {  // the kernels load 16 bytes at a time
    ModelBuilder m;
    const auto q = m.input("q", {2, 3, 5, width}), k = m.input("k", {2, 3, 7, width}),
               v = m.input("v", {2, 3, 7, width});
    m.output(m.op("aten.scaled_dot_product_attention.default", {q, k, v}));
    const auto analysis = m.analyse(onCuda());
    ASSERT_TRUE(analysis->derived()) << (analysis->problems.empty() ? "" : analysis->problems.back().message);
    expectOnCuda(*analysis);
    expectGradientShapes(*analysis);
    if (deviceStatus(cuda).available) continue;
    const bool fused =
        opNames(*analysis, analysis->backward).find("_scaled_dot_product_efficient_attention_backward") !=
        std::string::npos;
    EXPECT_EQ(fused, width == 16) << opNames(*analysis, analysis->backward);
  }
}

TEST(HollowCuda, aLossThatCudnnMightComputeIsDerived) {
  ModelBuilder m;
  const auto scores = m.input("scores", {12, 2, 5});
  const auto targets = m.input("targets", {2, 3}, DType::i64);
  const auto lengths = [](std::int64_t n) { return ModelBuilder::list({n, n}); };
  m.output(
      m.op("aten.ctc_loss.IntList", {m.op("aten.log_softmax.int", {scores, 2}), targets, lengths(12), lengths(3)}));
  const auto analysis = m.analyse(onCuda());
  ASSERT_TRUE(analysis->derived()) << (analysis->problems.empty() ? "" : analysis->problems.back().message);
  expectOnCuda(*analysis);
}

TEST(HollowCuda, whereDataDecideTheCpuTakesOver) {
  ModelBuilder m;
  const auto x = m.input("x", {6});
  m.output(m.op("aten.mul.Tensor", {m.op("aten.masked_select.default", {x, m.op("aten.gt.Scalar", {x, 0})}), 2}));
  const auto analysis = m.analyse(onCuda());
  ASSERT_TRUE(analysis->derived()) << (analysis->problems.empty() ? "" : analysis->problems.back().message);
  EXPECT_FALSE(analysis->dataDependent.empty());
  expectOnCuda(*analysis);
}

TEST(HollowCuda, aFileFromAGpuRunsOnTheCpu) {
  ModelBuilder m;
  const auto none = Argument::ofMissing();
  const auto zeros = m.op("aten.zeros.default", {ModelBuilder::list({2}), none, none, Argument::ofDevice("cuda:0")});
  m.output(m.op("aten.add.Tensor", {m.input("x", {2}), zeros}));
  const auto analysis = m.analyse();
  ASSERT_TRUE(analysis->derived()) << (analysis->problems.empty() ? "" : analysis->problems.back().message);
  Session session(analysis);
  session.runTo(session.size());
  ASSERT_TRUE(session.results().at(0));
  EXPECT_EQ(session.results()[0]->meta.device, Device());
}

TEST(HollowCuda, aNoteSaysThatTheDeviceIsClaimed) {
  if (deviceStatus(cuda).available) GTEST_SKIP() << "there is a GPU";
  ModelBuilder m;
  m.output(m.op("aten.sin.default", {m.input("x", {2})}));
  const auto analysis = m.analyse(onCuda());
  ASSERT_FALSE(analysis->problems.empty());
  EXPECT_EQ(analysis->problems[0].severity, Problem::Severity::note);
  EXPECT_EQ(analysis->problems[0].place, "cuda:0");
}

TEST(HollowCuda, runningSaysWhatIsMissing) {
  const auto status = deviceStatus(cuda);
  if (status.available) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(status.reason.empty());
  ModelBuilder m;
  m.output(m.op("aten.sin.default", {m.input("x", {2})}));
  const auto analysis = m.analyse(onCuda());
  try {
    Session session(analysis);
    FAIL() << "a session on a GPU that is not there";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badUse);
    EXPECT_EQ(e.place(), "cuda:0");
    EXPECT_NE(e.message().find(status.reason), std::string::npos) << e.message();
  }
}

TEST(Devices, theCpuIsAlwaysThereAndCudaIsNamedWithAReasonWhereItIsNot) {
  const auto all = devices();
  ASSERT_GE(all.size(), 2u);
  EXPECT_TRUE(all[0].available);
  EXPECT_EQ(all[0].device, Device());
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].device.type, Device::Type::cuda);
    EXPECT_NE(all[i].available, all[i].name.empty());
    EXPECT_EQ(all[i].available, all[i].reason.empty());
  }
  EXPECT_FALSE(deviceStatus(Device{Device::Type::cuda, 99}).available);
}

}  // namespace
}  // namespace retrograd::test

#include "core/torch/tracing/live_module.h"
#include "core/torch/analysis/analyse.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>
#include <iterator>

#include "core/derivation/analysis.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/session/session.h"
#include "core/trace/verifier.h"
#include "tests/live/example.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

using Tensors = std::vector<at::Tensor>;

std::vector<std::string> opsOf(const ModelFile& file) {
  std::vector<std::string> names;
  for (const auto op : file.computation.trace.ops) names.push_back(file.document->symbol(op).name);
  return names;
}

std::string moduleOf(const ModelFile& file, std::size_t op) {
  return std::string(file.document->text(file.document->boundSymbol(file.computation.trace.ops.at(op)).module));
}

at::Tensor asTensor(const TensorData& data) {
  return at::from_blob(const_cast<std::byte*>(data.data), data.meta.sizes,
                       at::TensorOptions().dtype(data.meta.dtype == DType::f32 ? at::kFloat : at::kLong))
      .clone();
}

/// The gradients that the trace gives against those of the program's own backward.
void expectSameGradients(torch::nn::Module& module, const Tensors& inputs, const LiveForward& forward) {
  auto file = traceModule(module, inputs, forward);
  for (const auto& problem : verify(*file.document, file.computation.trace))
    ADD_FAILURE() << problem.place << ": " << problem.message;
  const auto analysis = analyse(std::move(file));
  ASSERT_TRUE(analysis->derived());
  Session session(analysis);
  session.runTo(session.size());
  const auto gradients = session.gradients();
  for (auto& parameter : module.parameters()) parameter.mutable_grad() = at::Tensor();
  torch::manual_seed(0);
  Tensors leaves;
  for (const auto& input : inputs)
    leaves.push_back(input.is_floating_point() ? input.detach().clone().requires_grad_(true) : input);
  const auto outputs = forward(leaves);
  Tensors cotangents, roots;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const auto it = analysis->request.cotangents.find(std::to_string(i));
        it != analysis->request.cotangents.end()) {
      roots.push_back(outputs[i]);
      cotangents.push_back(asTensor(it->second));
    }
  torch::autograd::backward(roots, cotangents);
  const auto parameters = module.named_parameters();
  std::size_t compared = 0;
  for (const auto& input : analysis->computation().inputs) {
    if (input.kind != InputKind::parameter || !parameters[input.target].grad().defined()) continue;
    const auto it = gradients.find("p." + input.target);
    ASSERT_NE(it, gradients.end()) << input.target;
    EXPECT_TRUE(at::allclose(asTensor(it->second), parameters[input.target].grad(), 1e-5, 1e-6)) << input.target;
    ++compared;
  }
  EXPECT_GT(compared, 0u);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].is_floating_point() && leaves[i].grad().defined())
      EXPECT_TRUE(at::allclose(asTensor(gradients.at("in.input_" + std::to_string(i))), leaves[i].grad(), 1e-5, 1e-6))
          << i;
}

struct Mixed : torch::nn::Module {
  torch::nn::Conv1d conv{torch::nn::Conv1dOptions(2, 4, 3)};
  torch::nn::BatchNorm1d norm{4};
  torch::nn::Dropout drop{0.3};
  torch::nn::Linear out{4, 3};
  at::Tensor scale, seen;
  Mixed() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("drop", drop);
    register_module("out", out);
    scale = register_parameter("scale", torch::full({3}, 1.5));
    seen = register_buffer("seen", torch::zeros({3}));
  }
  at::Tensor forward(const at::Tensor& x) {
    auto h = norm(conv(x)).relu_().mean(2);
    auto y = out(drop(h)) * scale + torch::tensor({1.f, 2.f, 3.f}) + torch::tensor(std::vector<float>{4, 5, 6});
    {
      const at::NoGradGuard noGrad;
      seen.add_(y.detach().sum(0));
    }
    return y;
  }
};

TEST(LiveModule, opsStayWholeAndTensorsHaveTheirNames) {
  Mixed module;
  const auto file =
      traceModule(module, {torch::randn({5, 2, 6})}, [&](const Tensors& in) { return module.forward(in[0]); });
  const auto ops = opsOf(file);
  EXPECT_EQ(ops.at(0), "aten.conv1d.default");
  EXPECT_NE(std::find(ops.begin(), ops.end(), "aten.batch_norm.default"), ops.end());
  EXPECT_NE(std::find(ops.begin(), ops.end(), "aten.dropout.default"), ops.end());
  EXPECT_NE(std::find(ops.begin(), ops.end(), "aten.addmm.default"), ops.end());  // what torch::nn::Linear calls
  EXPECT_TRUE(file.traced);
  for (const char* name : {"conv.weight", "norm.running_mean", "out.bias", "scale", "seen"})
    EXPECT_TRUE(file.weights.contains(name)) << name;
  // Content from before the call: batch norm in training has moved the program's own.
  EXPECT_EQ(asTensor(file.weights.at("norm.running_var")).sum().item<float>(), 4.f);
  EXPECT_NE(module.norm->running_var.sum().item<float>(), 4.f);
  EXPECT_EQ(asTensor(file.weights.at("seen")).abs().sum().item<float>(), 0.f);
}

TEST(LiveModule, opsAreWhereScopesAndParametersSay) {
  Mixed module;
  const auto file = traceModule(module, {torch::randn({5, 2, 6})}, [&](const Tensors& in) {
    const ModuleScope outer("outer");
    const auto a = torch::relu(in[0]);
    const ModuleScope inner("inner.0");
    return torch::tanh(a);
  });
  EXPECT_EQ(moduleOf(file, 0), "outer");
  EXPECT_EQ(moduleOf(file, 1), "outer.inner.0");
  const auto plain = traceModule(module, {torch::randn({5, 2, 6})},
                                 [&](const Tensors& in) { return torch::relu(module.conv(in[0])); });
  EXPECT_EQ(moduleOf(plain, 0), "conv");
  EXPECT_EQ(moduleOf(plain, 1), "");
}

TEST(LiveModule, literalsAreConstantsWithTheirContent) {
  Mixed module;
  const auto file = traceModule(module, {torch::randn({3})}, [](const Tensors& in) {
    return in[0] * torch::tensor(std::vector<float>{1, 2, 3}) + 2;
  });
  const auto ops = opsOf(file);
  ASSERT_GE(ops.size(), 2u);
  EXPECT_EQ(ops[ops.size() - 2], "aten.mul.Tensor");
  EXPECT_EQ(ops.back(), "aten.add.Scalar");
  EXPECT_EQ(std::find(ops.begin(), ops.end(), "aten.empty.memory_format"),
            ops.end());  // what it asked memory for was filled unseen
  const auto literal = file.document->operands(file.computation.trace.ops[ops.size() - 2])[1];
  const auto& inputs = file.computation.inputs;
  const auto constant =
      std::find_if(inputs.begin(), inputs.end(), [&](const InputSpec& input) { return input.value == literal; });
  ASSERT_NE(constant, inputs.end());
  EXPECT_TRUE(at::equal(asTensor(file.constants.at(constant->target)), torch::tensor({1.f, 2.f, 3.f})));
  EXPECT_TRUE(file.problems.empty());
}

TEST(LiveModule, whatTakesTensorsOutOfTheTraceIsAProblem) {
  Mixed module;
  const auto data =
      traceModule(module, {torch::randn({3})}, [](const Tensors& in) { return in[0] * (in[0] * 2).data(); });
  ASSERT_EQ(data.problems.size(), 1u);
  EXPECT_NE(data.problems[0].message.find("data()"), std::string::npos);
  const auto stray = torch::ones({3}).requires_grad_(true);
  const auto captured = traceModule(module, {torch::randn({3})}, [&](const Tensors& in) { return in[0] * stray; });
  ASSERT_EQ(captured.problems.size(), 1u);
  EXPECT_NE(captured.problems[0].message.find("not a parameter of the module"), std::string::npos);
}

TEST(LiveModule, gradModeAndDataDependenceAreSeen) {
  Mixed module;
  const auto file = traceModule(module, {torch::ones({3})}, [](const Tensors& in) {
    at::Tensor a;
    {
      const at::NoGradGuard noGrad;
      a = in[0].exp();
    }
    const ModuleScope scope("gate");
    return in[0].sum().item<float>() > 0 ? a * in[0] : a;
  });
  EXPECT_FALSE(file.document->boundSymbol(file.computation.trace.ops[0]).gradMode);
  EXPECT_TRUE(file.document->boundSymbol(file.computation.trace.ops.back()).gradMode);
  ASSERT_EQ(file.dataDependent.size(), 1u);
  EXPECT_EQ(file.dataDependent[0], "aten.item.default, in gate");
}

TEST(LiveModule, aParameterRegisteredTwiceIsOneInput) {
  struct Tied : torch::nn::Module {
    torch::nn::Embedding embed{5, 3};
    at::Tensor out;
    Tied() {
      register_module("embed", embed);
      out = register_parameter("out", embed->weight);
    }
  } module;
  const LiveForward forward = [&](const Tensors& in) {
    return Tensors{torch::linear(module.embed(in[0]), module.out)};
  };
  const auto file = traceModule(module, {torch::tensor({1, 4})}, forward);
  std::size_t parameters = 0;
  for (const auto& input : file.computation.inputs)
    if (input.kind == InputKind::parameter) {
      ++parameters;
      EXPECT_EQ(input.aliases.size(), 1u);
    }
  EXPECT_EQ(parameters, 1u);
  expectSameGradients(module, {torch::tensor({1, 4})}, forward);
}

TEST(LiveModule, gradientsAreThoseOfTheProgram) {
  torch::manual_seed(1);
  Mixed module;
  expectSameGradients(module, {torch::randn({5, 2, 6})},
                      [&](const Tensors& in) { return Tensors{module.forward(in[0])}; });
  torch::nn::Sequential net(torch::nn::Linear(6, 8), torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})),
                            torch::nn::Dropout(0.0), torch::nn::Linear(8, 2));
  expectSameGradients(*net, {torch::randn({3, 6})}, [&](const Tensors& in) {
    const auto y = net->forward(in[0]);
    return Tensors{y, y.sum(0), in[0].contiguous() * 2};
  });
}

TEST(LiveModule, theProgramsGeneratorStaysAsItWas) {
  Mixed module;
  torch::manual_seed(11);
  const auto expected = torch::rand({3});
  torch::manual_seed(11);
  traceModule(module, {torch::randn({5, 2, 6}, torch::TensorOptions()).mul(0)},
              [&](const Tensors& in) { return module.forward(in[0]); });
  torch::manual_seed(11);
  traceModule(module, {torch::zeros({5, 2, 6})}, [&](const Tensors& in) { return module.forward(in[0]); });
  EXPECT_TRUE(at::equal(torch::rand({3}), expected));
}

TEST(LiveModule, errorsAreOurs) {
  Mixed module;
  try {
    traceModule(module, {torch::zeros({2, 2})}, [&](const Tensors& in) { return module.forward(in[0]); });
    FAIL() << "it ran";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::execution);
  }
  // And the thread can trace again.
  EXPECT_NO_THROW(
      traceModule(module, {torch::zeros({5, 2, 6})}, [&](const Tensors& in) { return module.forward(in[0]); }));
}

TEST(LiveModule, theExampleRunsAndIsTheOneInTheDocumentation) {
  EXPECT_EQ(traceNet(), 0);
  const auto read = [](const std::string& path) {
    std::ifstream in(sourcePath(path));
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto code = read("tests/live/example.cpp");
  const std::string begin = "// begin of the example\n", end = "// end of the example\n";
  const auto from = code.find(begin) + begin.size();
  const auto example = code.substr(from, code.find(end) - from);
  ASSERT_FALSE(example.empty());
  EXPECT_NE(read("docs/extending.md").find(example), std::string::npos);
}

}  // namespace
}  // namespace retrograd

// The formula of each op, compiled as TorchScript, gives what its kernel gives.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>

#include <cmath>
#include <map>
#include <regex>

#include "core/questions/op_formula.h"

namespace retrograd::test {
namespace {

using Stack = std::vector<c10::IValue>;

at::Tensor some(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble) * 3; }
at::Tensor share(at::IntArrayRef sizes) { return at::rand(sizes, at::kDouble) * 0.9 + 0.05; }
c10::IValue list(std::vector<std::int64_t> sizes) { return c10::IValue(c10::List<std::int64_t>(sizes)); }
c10::IValue all() { return c10::IValue(std::array<bool, 3>{true, true, true}); }

/// Arguments of each op for which its formula holds.
std::map<std::string_view, Stack> samples() {
  const auto g = some({5, 4}), x = some({5, 4}), y = some({5, 4});
  const auto classes = at::tensor({0, 3, 1, 1, 2}, at::kLong);
  const auto soft = at::softmax(x, -1);
  const auto weight = some({4}), bias = some({4});
  const auto layer = at::native_layer_norm(x, {4}, weight, bias, 1e-5);
  const auto batch = at::native_batch_norm(x, weight, bias, {}, {}, true, 0.1, 1e-5);
  const auto q = some({2, 3, 5, 4}), k = some({2, 3, 6, 4}), v = some({2, 3, 6, 4}), go = some({2, 3, 5, 4});
  const auto attention = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, false, {}, 0.7);
  const auto picture = some({2, 3, 6, 6});
  const auto pooled = at::max_pool2d_with_indices(picture, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false);
  const auto logSoft = at::log_softmax(x, -1);
  const auto nll = at::nll_loss_forward(logSoft, classes, {}, 1, -100);
  return {
      {"aten.sigmoid_backward", {g, at::sigmoid(x)}},
      {"aten.tanh_backward", {g, at::tanh(x)}},
      {"aten.threshold_backward", {g, x, 0.5}},
      {"aten.leaky_relu_backward", {g, x, 0.1, false}},
      {"aten.elu_backward", {g, 1.3, 1.1, 0.9, false, x}},
      {"aten.hardtanh_backward", {g, x, -1.0, 2.0}},
      {"aten.hardsigmoid_backward", {g, x}},
      {"aten.hardswish_backward", {g, x}},
      {"aten.silu_backward", {g, x}},
      {"aten.mish_backward", {g, x}},
      {"aten.gelu_backward", {g, x, "none"}},
      {"aten.softplus_backward", {g, x, 2.0, 3.0}},
      {"aten.log_sigmoid_backward", {g, x, std::get<1>(at::log_sigmoid_forward(x))}},
      {"aten.logit_backward", {g, share({5, 4}), c10::IValue()}},
      {"aten._softmax_backward_data", {g, soft, -1, static_cast<std::int64_t>(at::kDouble)}},
      {"aten._log_softmax_backward_data", {g, logSoft, -1, static_cast<std::int64_t>(at::kDouble)}},
      {"aten.native_dropout_backward", {g, x > 0, 1.25}},
      {"aten.mse_loss_backward", {some({}), x, y, 1}},
      {"aten.smooth_l1_loss_backward", {some({}), x, y, 1, 1.5}},
      {"aten.huber_loss_backward", {some({}), x, y, 1, 1.5}},
      {"aten.binary_cross_entropy_backward", {some({}), share({5, 4}), share({5, 4}), c10::IValue(), 1}},
      {"aten.nll_loss_backward", {some({}), logSoft, classes, c10::IValue(), 1, -100, std::get<1>(nll)}},
      {"aten.native_layer_norm_backward",
       {g, x, list({4}), std::get<1>(layer), std::get<2>(layer), weight, bias, all()}},
      {"aten.native_batch_norm_backward",
       {g, x, weight, c10::IValue(), c10::IValue(), std::get<1>(batch), std::get<2>(batch), true, 1e-5, all()}},
      {"aten._scaled_dot_product_flash_attention_for_cpu_backward",
       {go, q, k, v, std::get<0>(attention), std::get<1>(attention), 0.0, false, c10::IValue(), 0.7}},
      {"aten.select_backward", {some({5}), list({5, 4}), 1, 2}},
      {"aten.slice_backward", {some({5, 2}), list({5, 4}), 1, 0, 4, 2}},
      {"aten.embedding_dense_backward", {some({2, 3, 4}), at::randint(0, 6, {2, 3}), 6, -1, false}},
      {"aten.max_pool2d_with_indices_backward",
       {some({2, 3, 3, 3}), picture, list({3, 3}), list({2, 2}), list({1, 1}), list({1, 1}), false,
        std::get<1>(pooled)}},
  };
}

c10::OperatorHandle handleOf(std::string_view op) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + std::string(op.substr(op.find('.') + 1))).c_str(),
                                                        "");
}

std::string typeOf(const c10::IValue& value) {
  return value.isNone() ? "Optional[Tensor]" : value.type()->annotation_str();
}

/// A function of the op's arguments that returns the formula's results.
std::string sourceOf(const OpFormula& formula, const c10::FunctionSchema& schema, const Stack& arguments) {
  static const std::regex functions(R"((^|[^.\w])(where|exp|erf|tanh|sigmoid|log1p|clamp|zeros_like|zeros)(?=\())");
  static const std::regex pi(R"(\bpi\b)"), zeros(R"(torch\.zeros\(((\[[^\]]*\])|\w+)\))");
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    parameters.push_back(schema.arguments()[i].name() + ": " + typeOf(arguments[i]));
  const auto code = [&](std::string_view expression) {
    auto text = std::regex_replace(std::string(expression), functions, "$1torch.$2");
    text = std::regex_replace(text, zeros, "torch.zeros($1, dtype=7)");
    return std::regex_replace(text, pi, fmt::format("{:.17}", M_PI));
  };
  auto source = fmt::format("def formula({}):\n", fmt::join(parameters, ", "));
  for (const auto name : formula.names) source += "  " + code(name) + "\n";
  source += "  return [";
  for (const auto result : formula.results) source += code(result) + ", ";
  return source + "]\n";
}

TEST(OpFormulas, AreWhatTheKernelsCompute) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  at::manual_seed(7);
  const auto inputs = samples();
  for (const auto& formula : opFormulas()) {
    SCOPED_TRACE(std::string(formula.op));
    ASSERT_TRUE(inputs.contains(formula.op));
    const auto& arguments = inputs.at(formula.op);
    const auto handle = handleOf(formula.op);
    auto kernel = arguments, own = arguments;
    handle.callBoxed(kernel);
    torch::jit::CompilationUnit unit;
    const auto source = sourceOf(formula, handle.schema(), arguments);
    SCOPED_TRACE(source);
    try {
      unit.define(std::nullopt, source, torch::jit::nativeResolver(), nullptr);
      own = {unit.get_function("formula")(own)};
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    const auto results = own[0].toTensorVector();
    ASSERT_EQ(results.size(), kernel.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(at::allclose(results[i].to(at::kDouble), kernel[i].toTensor(), 1e-6, 1e-8)) << "result " << i;
  }
}

TEST(OpFormulas, AreFoundByTheOpsFullName) {
  ASSERT_NE(formulaOf("aten.sigmoid_backward.default"), nullptr);
  EXPECT_EQ(formulaOf("aten.sigmoid_backward.default")->results[0], "grad_output * output * (1 - output)");
  EXPECT_EQ(formulaOf("aten.sigmoid_backward"), formulaOf("aten.sigmoid_backward.default"));
  EXPECT_EQ(formulaOf("aten.mm.default"), nullptr);
}

}  // namespace
}  // namespace retrograd::test

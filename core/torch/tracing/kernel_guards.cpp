#include "core/torch/tracing/kernel_guards.h"

#include <ATen/core/Tensor.h>

#include <set>
#include <string_view>

namespace retrograd {
namespace {

using Arguments = std::vector<c10::IValue>;

void requireChannels(const c10::FunctionSchema& schema, const Arguments& arguments) {
  static const std::set<std::string_view> byChannel{"weight", "bias", "running_mean", "running_var"},
      ofBatch{"save_mean", "save_invstd", "save_var"}, flags{"train", "training", "update"};
  if (arguments.empty() || !arguments[0].isTensor()) return;
  const auto& input = arguments[0].toTensor();
  if (!input.defined() || input.dim() < 2) return;
  const auto nameOf = [&](std::size_t i) { return std::string_view(schema.arguments()[i].name()); };
  bool isTraining = false;
  for (std::size_t i = 1; i < arguments.size(); ++i)
    isTraining |= flags.contains(nameOf(i)) && arguments[i].isBool() && arguments[i].toBool();
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !(byChannel.contains(nameOf(i)) || ofBatch.contains(nameOf(i)))) continue;
    const auto& tensor = arguments[i].toTensor();
    const bool isUnused = ofBatch.contains(nameOf(i)) && !isTraining;  // empty then
    TORCH_CHECK(!tensor.defined() || isUnused || tensor.numel() == input.size(1), nameOf(i), " has ", tensor.numel(),
                " elements, the input has ", input.size(1), " channels");
  }
}

/// mkldnn_rnn_layer(input, weight0, weight1, weight2, weight3, hx, cx, reverse, batch_sizes, mode, hidden_size, ...),
/// which `lstm` calls.
void requireLstmWeights(const Arguments& arguments) {
  constexpr std::size_t modeAt = 9, hiddenAt = 10;
  constexpr std::int64_t lstm = 2;
  if (arguments.size() <= hiddenAt || arguments[modeAt].toInt() != lstm) return;
  const auto hidden = arguments[hiddenAt].toInt();
  const auto& input = arguments[0].toTensor();
  const auto require = [&](std::size_t i, std::int64_t columns) {
    const auto& weight = arguments[i].toTensor();
    TORCH_CHECK(weight.dim() == 2 && weight.size(0) == 4 * hidden && weight.size(1) == columns,
                "a weight of the LSTM has the shape ", weight.sizes(), ", expected [", 4 * hidden, ", ", columns, "]");
  };
  require(1, input.size(-1));
  require(2, hidden);
  for (const std::size_t bias : {3, 4})
    TORCH_CHECK(arguments[bias].toTensor().numel() == 4 * hidden || arguments[bias].toTensor().numel() == 0,
                "a bias of the LSTM has ", arguments[bias].toTensor().numel(), " elements, expected ", 4 * hidden);
}

/// median.dim and nanmedian.dim take a step of 0 for one of 1.
void requireDistinctElements(const Arguments& arguments) {
  const auto& self = arguments.at(0).toTensor();
  if (arguments.size() < 2 || !arguments[1].isInt() || self.dim() == 0) return;
  const auto dim = arguments[1].toInt() + (arguments[1].toInt() < 0 ? self.dim() : 0);
  if (dim < 0 || dim >= self.dim()) return;
  TORCH_CHECK(
      self.size(dim) < 2 || self.stride(dim) != 0, "the tensor is expanded along dimension ", dim,
      ", of which the median is taken: LibTorch's kernel reads what lies behind it; copy the tensor first (clone)");
}

/// The kernel for the CPU takes as many positions of value as key has, and its backward writes as many of the gradient
/// as value has.
void requireValues(std::string_view name, const c10::FunctionSchema& schema, const Arguments& arguments) {
  const auto at = [&](const char* argument) {
    const auto index = schema.argumentIndexWithName(argument);
    return index ? arguments.at(static_cast<std::size_t>(*index)) : c10::IValue();
  };
  const auto key = at("key"), value = at("value");
  if (!key.isTensor() || !value.isTensor() || key.toTensor().dim() < 2 || value.toTensor().dim() < 2) return;
  const auto keys = key.toTensor().size(-2), values = value.toTensor().size(-2);
  TORCH_CHECK(name.ends_with("_backward") ? values == keys : values >= keys, "value has ", values,
              " positions, key has ", keys);
}

}  // namespace

void requireWhatKernelsAssume(const c10::FunctionSchema& schema, const Arguments& arguments) {
  const std::string_view name = schema.name();
  if (name.find("batch_norm") != std::string_view::npos) requireChannels(schema, arguments);
  else if (name == "aten::mkldnn_rnn_layer") requireLstmWeights(arguments);
  else if (name.starts_with("aten::_scaled_dot_product_flash_attention_for_cpu"))
    requireValues(name, schema, arguments);
  else if (name == "aten::median" || name == "aten::nanmedian") requireDistinctElements(arguments);
}

}  // namespace retrograd

#include "core/torch/tracing/shape_rules.h"

#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <functional>
#include <map>

#include "core/torch/tracing/interceptor.h"

namespace retrograd {
namespace {

using Stack = torch::jit::Stack;

at::Tensor like(const at::Tensor& tensor) { return at::empty_like(tensor, at::MemoryFormat::Contiguous); }
at::Tensor sized(const at::Tensor& tensor, at::IntArrayRef sizes) { return at::empty(sizes, tensor.options()); }
bool given(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }

constexpr std::int64_t gruWorkspace = 5,
                       gruGates =
                           3;  // tensors of the hidden size that the fused GRU cell keeps, and that it is made of

/// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace)
Stack lstmCell(const Stack& arguments) {
  const auto cell = arguments[2].toTensor();
  return {like(cell), like(cell), like(arguments[0].toTensor())};
}

/// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx, grad_bias)
Stack lstmCellBackward(const Stack& arguments) {
  if (!given(arguments[0]) && !given(arguments[1])) return {at::Tensor(), at::Tensor(), at::Tensor()};
  const auto workspace = arguments[4].toTensor();
  return {like(workspace), like(arguments[2].toTensor()),
          arguments[5].toBool() ? sized(workspace, {workspace.size(1)}) : at::Tensor()};
}

/// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace)
Stack gruCell(const Stack& arguments) {
  const auto hidden = arguments[2].toTensor();
  return {like(hidden), sized(hidden, {hidden.size(0), hidden.size(1) * gruWorkspace})};
}

/// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
Stack gruCellBackward(const Stack& arguments) {
  const auto gradient = arguments[0].toTensor(), workspace = arguments[1].toTensor();
  const auto width = workspace.size(1) / gruWorkspace * gruGates;
  const auto gates = [&] { return sized(workspace, {workspace.size(0), width}); };
  const auto bias = [&] { return arguments[2].toBool() ? sized(workspace, {width}) : at::Tensor(); };
  return {gates(), gates(), like(gradient), bias(), bias()};
}

/// Memory laid out as (batch, length, heads, width), seen as (batch, heads, length, width).
at::Tensor byHeads(const at::Tensor& like, std::int64_t length, std::int64_t width) {
  return at::empty({like.size(0), length, like.size(1), width}, like.options()).transpose(1, 2);
}

constexpr std::int64_t logsumexpBlock = 32, biasAlignment = 16;

std::int64_t roundedUp(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// (query, key, value, attn_bias?, compute_log_sumexp, dropout_p, is_causal, *, scale) -> (output, log_sumexp,
/// philox_seed, philox_offset)
Stack efficientAttention(const Stack& arguments) {
  const auto query = arguments[0].toTensor(), value = arguments[2].toTensor();
  const auto rows = arguments[4].toBool() ? roundedUp(query.size(2), logsumexpBlock) : 0;
  const auto seed = query.options().dtype(at::kLong);
  return {byHeads(query, query.size(2), value.size(3)),
          at::empty({query.size(0), query.size(1), rows}, query.options().dtype(at::kFloat)), at::empty({}, seed),
          at::empty({}, seed)};
}

/// (grad_out, query, key, value, attn_bias, out, logsumexp, seed, offset, dropout_p, grad_input_mask, ...) -> (query,
/// key, value, bias)
Stack efficientAttentionBackward(const Stack& arguments) {
  const auto query = arguments[1].toTensor(), key = arguments[2].toTensor(), value = arguments[3].toTensor();
  const auto wanted = arguments[10].toBoolList();
  at::Tensor bias;
  if (wanted.get(3) && given(arguments[4])) {
    const auto given = arguments[4].toTensor();
    auto sizes = given.sizes().vec();
    sizes.back() = roundedUp(sizes.back(), biasAlignment);
    bias = at::empty(sizes, given.options()).narrow(-1, 0, given.size(-1));
  }
  return {byHeads(query, query.size(2), query.size(3)), byHeads(key, key.size(2), key.size(3)),
          byHeads(value, value.size(2), value.size(3)), bias};
}

/// Without a kernel for shapes it would run on zeros, which integers refuse to be divided by.
Stack floorDivide(const Stack& arguments) {
  return {at::div(arguments[0].toTensor(), arguments[1].toTensor(), "floor")};
}

/// cuDNN takes a CTC loss only with targets on the CPU; a model that was moved has them next to its weights.
Stack noCudnn(const Stack&) { return {false}; }

const std::map<std::string_view, std::function<Stack(const Stack&)>>& rules() {
  static const std::map<std::string_view, std::function<Stack(const Stack&)>> table{
      {"aten::_thnn_fused_lstm_cell", lstmCell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", lstmCellBackward},
      {"aten::_thnn_fused_gru_cell", gruCell},
      {"aten::_thnn_fused_gru_cell_backward", gruCellBackward},
      {"aten::_scaled_dot_product_efficient_attention", efficientAttention},
      {"aten::_scaled_dot_product_efficient_attention_backward", efficientAttentionBackward},
      {"aten::floor_divide", floorDivide},
      {"aten::_use_cudnn_ctc_loss", noCudnn},
      {"aten::_use_cudnn_ctc_loss.Tensor", noCudnn},
  };
  return table;
}

}  // namespace

std::optional<Stack> resultsByRule(std::string_view name, const Stack& arguments) {
  const auto rule = rules().find(name);
  if (rule == rules().end()) return std::nullopt;
  BelowInterception below;
  return rule->second(arguments);
}

}  // namespace retrograd

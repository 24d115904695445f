#include "core/questions/op_formula.h"

#include <algorithm>

namespace retrograd {

/// Tested against the kernels (op_formula_test.cpp), each with arguments for which it holds.
const std::vector<OpFormula>& opFormulas() {
  static const std::vector<OpFormula> formulas{
      // Activations.
      {"aten.sigmoid_backward", {"grad_output * output * (1 - output)"}, {}, {}},
      {"aten.tanh_backward", {"grad_output * (1 - output * output)"}, {}, {}},
      {"aten.threshold_backward", {"grad_output * (self > threshold)"}, {}, {}},
      {"aten.leaky_relu_backward", {"grad_output * where(self > 0, 1, negative_slope)"}, {}, {}},
      {"aten.elu_backward",
       {"grad_output * where(self_or_result > 0, scale, input_scale * alpha * scale * e)"},
       {"e = exp(self_or_result * input_scale)"},
       "of self, not of the result"},
      {"aten.hardtanh_backward", {"grad_output * ((self > min_val) & (self < max_val))"}, {}, {}},
      {"aten.hardsigmoid_backward", {"grad_output * ((self > -3) & (self < 3)) / 6"}, {}, {}},
      {"aten.hardswish_backward", {"grad_output * where(self < -3, 0, where(self > 3, 1, self / 3 + 0.5))"}, {}, {}},
      {"aten.silu_backward", {"grad_output * s * (1 + self * (1 - s))"}, {"s = sigmoid(self)"}, {}},
      {"aten.mish_backward",
       {"grad_output * (t + self * sigmoid(self) * (1 - t * t))"},
       {"t = tanh(log1p(exp(self)))"},
       {}},
      {"aten.gelu_backward",
       {"grad_output * (p + self * d)"},
       {"p = (1 + erf(self / 2 ** 0.5)) / 2", "d = exp(-self * self / 2) / (2 * pi) ** 0.5"},
       "approximate='none'"},
      {"aten.softplus_backward", {"grad_output * where(self * beta > threshold, 1, sigmoid(self * beta))"}, {}, {}},
      {"aten.log_sigmoid_backward", {"grad_output * sigmoid(-self)"}, {}, {}},
      {"aten.logit_backward", {"grad_output / (self * (1 - self))"}, {}, {}},
      {"aten._softmax_backward_data", {"output * (grad_output - (grad_output * output).sum(dim, True))"}, {}, {}},
      {"aten._log_softmax_backward_data", {"grad_output - exp(output) * grad_output.sum(dim, True)"}, {}, {}},
      {"aten.native_dropout_backward", {"grad_output * mask * scale"}, {}, {}},
      // Losses.
      {"aten.mse_loss_backward", {"grad_output * 2 * (self - target) / self.numel()"}, {}, "reduction='mean'"},
      {"aten.smooth_l1_loss_backward",
       {"grad_output * clamp((self - target) / beta, -1, 1) / self.numel()"},
       {},
       "reduction='mean'"},
      {"aten.huber_loss_backward",
       {"grad_output * clamp(self - target, -delta, delta) / self.numel()"},
       {},
       "reduction='mean'"},
      {"aten.binary_cross_entropy_backward",
       {"grad_output * (self - target) / (self * (1 - self)) / self.numel()"},
       {},
       "reduction='mean', without weight"},
      {"aten.nll_loss_backward",
       {"zeros_like(self).scatter(1, target.unsqueeze(1), -1) * grad_output / total_weight"},
       {},
       "reduction='mean', without weight, no target is ignored"},
      // Norms.
      {"aten.native_layer_norm_backward",
       {"rstd * (g - g.mean(-1, True) - x * (g * x).mean(-1, True))", "(grad_out * x).flatten(0, -2).sum(0)",
        "grad_out.flatten(0, -2).sum(0)"},
       {"g = grad_out * weight", "x = (input - mean) * rstd"},
       "over the last dimension"},
      {"aten.native_batch_norm_backward",
       {"save_invstd * (g - g.mean(0) - x * (g * x).mean(0))", "(grad_out * x).sum(0)", "grad_out.sum(0)"},
       {"g = grad_out * weight", "x = (input - save_mean) * save_invstd"},
       "train=True; means and sums are over all dimensions but that of channels, here the last"},
      // Attention. p is what the softmax gave.
      {"aten._scaled_dot_product_flash_attention_for_cpu_backward",
       {"d @ key * scale", "d.transpose(-2, -1) @ query * scale", "p.transpose(-2, -1) @ grad_out"},
       {"p = exp(query @ key.transpose(-2, -1) * scale - logsumexp.unsqueeze(-1))",
        "d = p * (grad_out @ value.transpose(-2, -1) - (grad_out * out).sum(-1, True))"},
       "without mask; scale is 1 / query.size(-1) ** 0.5 where none is given"},
      // What takes a part, or gathers.
      {"aten.select_backward", {"zeros(input_sizes).select_scatter(grad_output, dim, index)"}, {}, {}},
      {"aten.slice_backward", {"zeros(input_sizes).slice_scatter(grad_output, dim, start, end, step)"}, {}, {}},
      {"aten.embedding_dense_backward",
       {"zeros([num_weights, grad_output.size(-1)]).index_add(0, indices.flatten(), grad_output.flatten(0, -2))"},
       {},
       "without padding_idx"},
      {"aten.max_pool2d_with_indices_backward",
       {"zeros_like(self).flatten(-2).scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).view_as(self)"},
       {},
       {}},
  };
  return formulas;
}

const OpFormula* formulaOf(std::string_view op) {
  const auto name = op.substr(0, op.find('.', op.find('.') + 1));
  const auto& all = opFormulas();
  const auto found = std::find_if(all.begin(), all.end(), [&](const OpFormula& formula) { return formula.op == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace retrograd

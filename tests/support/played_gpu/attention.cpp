// Memory-efficient attention of the played GPU: what ATen/native/transformers/cuda/attention.cu computes, by products
// of matrices. Its results lie in memory as those of the kernel do: heads next to last, log-sum-exp of a multiple
// of 32.
#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

namespace retrograd::test {
namespace {

using Bias = std::optional<at::Tensor>;

/// For float64 and with dropout, the composite of matrix products, as LibTorch chooses on a GPU for the former.
std::int64_t chooseAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Bias&,
                             double dropout, bool, std::optional<double>, bool) {
  const auto fits = [&](const at::Tensor& t) { return t.dim() == 4 && t.numel() > 0 && t.size(1) == query.size(1); };
  const bool possible = query.scalar_type() != at::kDouble && !query.is_complex() && dropout == 0 && fits(query) &&
                        fits(key) && fits(value) && query.size(-1) % 4 == 0;
  return static_cast<std::int64_t>(possible ? at::SDPBackend::efficient_attention : at::SDPBackend::math);
}

[[maybe_unused]] const bool choosesAttention = [] {
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(chooseAttention);
  return true;
}();

double scaleOf(const at::Tensor& query, std::optional<double> scale) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
}

at::Tensor scores(const at::Tensor& query, const at::Tensor& key, const Bias& bias, bool isCausal, double scale) {
  auto scores = at::matmul(query.to(at::kFloat), key.to(at::kFloat).transpose(-2, -1)) * scale;
  if (bias && bias->defined()) scores = scores + *bias;
  if (!isCausal) return scores;
  const auto seen = at::ones({query.size(-2), key.size(-2)}, scores.options().dtype(at::kBool)).tril();
  return scores.masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attention(const at::Tensor& query, const at::Tensor& key,
                                                                     const at::Tensor& value, const Bias& bias,
                                                                     bool keepsLogSumExp, double dropout, bool isCausal,
                                                                     std::optional<double> scale) {
  TORCH_CHECK(dropout == 0, "the played GPU has no attention with dropout in one kernel");
  const auto all = scores(query, key, bias, isCausal, scaleOf(query, scale));
  const auto rows = query.size(-2), padded = keepsLogSumExp ? (rows + 31) / 32 * 32 : 0;
  auto logSumExp = at::zeros({query.size(0), query.size(1), padded}, all.options());
  if (keepsLogSumExp) logSumExp.narrow(-1, 0, rows).copy_(at::logsumexp(all, {-1}));
  const auto result = at::matmul(at::softmax(all, -1), value.to(at::kFloat)).to(query.scalar_type());
  const auto number = at::zeros({}, query.options().dtype(at::kLong));
  return {result.transpose(1, 2).contiguous().transpose(1, 2), logSumExp, number, number.clone()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attentionBackward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& bias, const at::Tensor& result, const at::Tensor& logSumExp, const at::Tensor&, const at::Tensor&,
    double, std::array<bool, 4> wanted, bool isCausal, std::optional<double> scale) {
  const auto factor = scaleOf(query, scale);
  const auto weights =
      at::exp(scores(query, key, bias, isCausal, factor) - logSumExp.narrow(-1, 0, query.size(-2)).unsqueeze(-1));
  const auto arriving = gradient.to(at::kFloat);
  const auto ofValue = at::matmul(weights.transpose(-2, -1), arriving);
  const auto ofWeights = at::matmul(arriving, value.to(at::kFloat).transpose(-2, -1));
  const auto ofScores = weights * (ofWeights - (arriving * result.to(at::kFloat)).sum(-1, true));
  const auto as = [](const at::Tensor& found, const at::Tensor& of) {
    return found.to(of.scalar_type()).transpose(1, 2).contiguous().transpose(1, 2);
  };
  return {as(at::matmul(ofScores, key.to(at::kFloat)) * factor, query),
          as(at::matmul(ofScores.transpose(-2, -1), query.to(at::kFloat)) * factor, key), as(ofValue, value),
          wanted[3] && bias.defined() ? ofScores.sum_to_size(bias.sizes()).to(bias.scalar_type()) : at::Tensor()};
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_scaled_dot_product_efficient_attention", attention);
  library.impl("_scaled_dot_product_efficient_attention_backward", attentionBackward);
}

}  // namespace
}  // namespace retrograd::test

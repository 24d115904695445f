// Fused attention of GPUs on the CPU: the same ops, by their formulas.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "core/torch/packs/libtorch/attention.h"

namespace retrograd {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Nine = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                        at::Tensor, at::Tensor>;

constexpr std::int64_t rowBlock = 32,  // memory-efficient attention pads the rows of its logsumexp to this
    biasBlock = 16;                    // and the memory of a bias's rows to this
constexpr std::int64_t seeds = std::int64_t{1} << 62;

std::int64_t padded(std::int64_t n, std::int64_t block) { return (n + block - 1) / block * block; }

/// What an attention is of.
struct Attention : AttentionOperands {
  at::Tensor bias;
  double dropout;
  bool isCausal;

  Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, at::Tensor additive, double p,
            bool causal, std::optional<double> scale)
      : AttentionOperands(checked(query, key, value), key, value, scale),
        bias(std::move(additive)),
        dropout(p),
        isCausal(causal) {}

  static const at::Tensor& checked(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
    TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, "attention takes tensors of 4 dimensions");
    const auto heads = query.size(-3);
    TORCH_CHECK(key.size(-3) > 0 && value.size(-3) > 0 && heads % key.size(-3) == 0 && heads % value.size(-3) == 0,
                "the query has ", heads, " heads, the key ", key.size(-3), ", the value ", value.size(-3));
    return query;
  }

  at::Tensor scores() const { return AttentionOperands::scores(bias, isCausal); }
  bool drops() const { return dropout > 0; }
};

/// The dropout of a seed: what each weight is multiplied by.
at::Tensor maskOf(const at::Tensor& weights, double dropout, const at::Tensor& seed) {
  if (weights.is_meta()) return at::empty_like(weights);
  const auto number = seed.reshape({-1}).view(at::kLong)[0].item<std::int64_t>();
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(number));
  return at::rand(weights.sizes(), generator, weights.options()).ge(dropout).to(weights.scalar_type()) / (1 - dropout);
}

/// A seed for the backward as well: drawn where there is dropout, as a GPU takes one from its generator.
at::Tensor freshSeed(const at::Tensor& query, bool draws) {
  const auto options = query.options().dtype(at::kLong);
  return draws && !query.is_meta() ? at::randint(seeds, {}, options) : at::zeros({}, options);
}

/// Memory in the order of `like`'s dimensions, as kernels allocate their results.
at::Tensor laidOutLike(const at::Tensor& like, const at::Tensor& tensor) {
  std::vector<std::int64_t> order{0, 1, 2, 3};
  std::ranges::stable_sort(order, [&](auto a, auto b) { return like.stride(a) > like.stride(b); });
  std::vector<std::int64_t> sizes, back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sizes.push_back(tensor.size(order[i]));
    back[order[i]] = static_cast<std::int64_t>(i);
  }
  return at::empty(sizes, like.options()).permute(back).copy_(tensor);
}

/// Memory of (batch, length, heads, width).
at::Tensor byLength(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.to(type).transpose(1, 2).contiguous().transpose(1, 2);
}

struct Forward {
  at::Tensor output, logsumexp;  ///< the latter of (batch, heads, length), in float
};

Forward forwardOf(const Attention& of, const at::Tensor& seed) {
  if (of.q.is_meta()) {  // not every op below has a meta kernel in C++
    const auto rows = of.q.sizes().slice(0, 3);
    auto sizes = rows.vec();
    sizes.push_back(of.v.size(-1));
    return {at::empty(sizes, of.q.options()), at::empty(rows, of.q.options().dtype(at::kFloat))};
  }
  const auto scores = of.scores();
  const auto logsumexp = scores.logsumexp(-1);
  auto weights = at::_safe_softmax(scores, -1);
  if (of.drops()) weights = weights * maskOf(weights, of.dropout, seed);
  return {weights.matmul(of.v), logsumexp.to(at::kFloat)};
}

struct Backward {
  at::Tensor query, key, value, scores;
};

/// By what the forward gave, as the kernels do: the weights are exp(scores - logsumexp).
Backward backwardOf(const Attention& of, const at::Tensor& gradient, const at::Tensor& output,
                    const at::Tensor& logsumexp, const at::Tensor& seed) {
  if (of.q.is_meta())
    return {at::empty_like(of.q), at::empty_like(of.k), at::empty_like(of.v),
            at::empty({of.q.size(0), of.q.size(1), of.q.size(2), of.k.size(2)}, of.q.options())};
  const auto heads = of.q.size(1), length = of.q.size(2);
  const auto g = inAccumulator(gradient), out = inAccumulator(output);
  const auto sums = logsumexp.reshape({of.q.size(0), heads, -1}).narrow(-1, 0, length).unsqueeze(-1);
  const auto isEmpty = sums.isneginf();  // a row without any place to look at
  const auto weights = (of.scores() - sums.masked_fill(isEmpty, 0)).exp().masked_fill(isEmpty, 0);
  const auto mask = of.drops() ? maskOf(weights, of.dropout, seed) : at::Tensor();
  auto ofWeights = g.matmul(of.v.transpose(-2, -1));
  if (mask.defined()) ofWeights = ofWeights * mask;
  const auto ofScores = weights * (ofWeights - (g * out).sum(-1, true));
  const auto dropped = mask.defined() ? weights * mask : weights;
  return {ofScores.matmul(of.k) * of.factor, ofScores.transpose(-2, -1).matmul(of.q) * of.factor,
          dropped.transpose(-2, -1).matmul(g), ofScores};
}

/// A gradient of the input that heads may share, in its type and the order of its memory.
at::Tensor gradientOf(const at::Tensor& input, const at::Tensor& gradient) {
  return laidOutLike(input, overSharingHeads(gradient, input.size(1)));
}

// --- flash ---

Nine flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout, bool isCausal, bool,
           std::optional<double> scale) {
  const Attention of(query, key, value, {}, dropout, isCausal, scale);
  const auto seed = freshSeed(query, of.drops());
  const auto [output, logsumexp] = forwardOf(of, seed);
  const auto state = query.options().dtype(at::kUInt64);
  auto rngState = at::zeros({2}, state);
  if (!query.is_meta()) rngState.view(at::kLong).narrow(0, 0, 1).copy_(seed);
  return {laidOutLike(query, output),     logsumexp, {}, {}, query.size(2), key.size(2), rngState, at::zeros({}, state),
          at::empty({0}, query.options())};
}

// NOLINTBEGIN(performance-unnecessary-value-param): LibTorch's signatures
Three flashBackward(const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& output, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
                    c10::SymInt, c10::SymInt, double dropout, bool isCausal, const at::Tensor& seed, const at::Tensor&,
                    std::optional<double> scale) {
  const Attention of(query, key, value, {}, dropout, isCausal, scale);
  const auto gradients = backwardOf(of, gradient, output, logsumexp, seed);
  return {gradientOf(query, gradients.query), gradientOf(key, gradients.key), gradientOf(value, gradients.value)};
}

// --- cuDNN ---

Nine cudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& bias,
           bool wantsLogsumexp, double dropout, bool isCausal, bool, std::optional<double> scale) {
  const Attention of(query, key, value, bias.value_or(at::Tensor()), dropout, isCausal, scale);
  const auto seed = freshSeed(query, of.drops());
  const auto [output, logsumexp] = forwardOf(of, seed);
  return {laidOutLike(query, output),
          wantsLogsumexp ? logsumexp.unsqueeze(-1) : at::empty({0}, logsumexp.options()),
          {},
          {},
          query.size(2),
          key.size(2),
          seed,
          at::zeros({}, seed.options()),
          {}};
}

Three cudnnBackward(const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& output, const at::Tensor& logsumexp, const at::Tensor& seed, const at::Tensor&,
                    const at::Tensor& bias, const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt,
                    double dropout, bool isCausal, std::optional<double> scale) {
  const Attention of(query, key, value, bias, dropout, isCausal, scale);
  const auto gradients = backwardOf(of, gradient, output, logsumexp, seed);
  return {gradientOf(query, gradients.query), gradientOf(key, gradients.key), gradientOf(value, gradients.value)};
}
// NOLINTEND(performance-unnecessary-value-param)

// --- memory-efficient ---

Four efficient(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& bias,
               bool wantsLogsumexp, double dropout, bool isCausal, std::optional<double> scale) {
  const Attention of(query, key, value, bias.value_or(at::Tensor()), dropout, isCausal, scale);
  const auto seed = freshSeed(query, of.drops());
  const auto [output, logsumexp] = forwardOf(of, seed);
  const auto rows = wantsLogsumexp ? padded(query.size(2), rowBlock) : 0;
  auto sums = at::zeros({query.size(0), query.size(1), rows}, logsumexp.options());
  if (wantsLogsumexp) sums.narrow(-1, 0, query.size(2)).copy_(logsumexp);
  return {byLength(output, query.scalar_type()), sums, seed, at::zeros({}, seed.options())};
}

Four efficientBackward(const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value, const at::Tensor& bias, const at::Tensor& output,
                       const at::Tensor& logsumexp, const at::Tensor& seed, const at::Tensor&, double dropout,
                       std::array<bool, 4> wanted, bool isCausal, std::optional<double> scale) {
  if (!gradient.defined()) return {};
  const Attention of(query, key, value, bias, dropout, isCausal, scale);
  const auto gradients = backwardOf(of, gradient, output, logsumexp, seed);
  at::Tensor ofBias;
  if (wanted[3] && bias.defined()) {
    auto sizes = bias.sizes().vec();
    sizes.back() = padded(sizes.back(), biasBlock);
    ofBias = at::empty(sizes, bias.options()).narrow(-1, 0, bias.size(-1));
    ofBias.copy_(gradients.scores.sum_to_size(bias.sizes()));
  }
  return {byLength(gradients.query, query.scalar_type()),
          byLength(overSharingHeads(gradients.key, key.size(1)), key.scalar_type()),
          byLength(overSharingHeads(gradients.value, value.size(1)), value.scalar_type()), ofBias};
}

}  // namespace

void registerAttentionKernels() {
  static const auto libraries = [] {
    std::vector<torch::Library> registered;
    for (auto key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta}) {
      auto& library = registered.emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
      library.impl("_scaled_dot_product_flash_attention", flash);
      library.impl("_scaled_dot_product_flash_attention_backward", flashBackward);
      library.impl("_scaled_dot_product_cudnn_attention", cudnn);
      library.impl("_scaled_dot_product_cudnn_attention_backward", cudnnBackward);
      library.impl("_scaled_dot_product_efficient_attention", efficient);
      library.impl("_scaled_dot_product_efficient_attention_backward", efficientBackward);
    }
    return registered;
  }();
  (void)libraries;
}

}  // namespace retrograd

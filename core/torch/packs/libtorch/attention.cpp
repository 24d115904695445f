#include "core/torch/packs/libtorch/attention.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace retrograd {
namespace {

at::Tensor forEachHead(const at::Tensor& shared, std::int64_t heads) {
  return shared.size(-3) == heads ? shared : shared.repeat_interleave(heads / shared.size(-3), -3);
}

}  // namespace

at::Tensor inAccumulator(const at::Tensor& tensor) {
  return at::isReducedFloatingType(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
}

at::Tensor overSharingHeads(const at::Tensor& gradient, std::int64_t heads) {
  if (gradient.size(-3) == heads) return gradient;
  auto sizes = gradient.sizes().vec();
  sizes[sizes.size() - 3] = heads;
  sizes.insert(sizes.end() - 2, gradient.size(-3) / heads);
  return gradient.reshape(sizes).sum(-3);
}

AttentionOperands::AttentionOperands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                     std::optional<double> scale)
    : q(inAccumulator(query)),
      k(forEachHead(inAccumulator(key), query.size(-3))),
      v(forEachHead(inAccumulator(value), query.size(-3))),
      factor(scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))))) {}

at::Tensor AttentionOperands::scores(const at::Tensor& bias, bool isCausal) const {
  constexpr auto hidden = -std::numeric_limits<double>::infinity();
  auto scores = q.matmul(k.transpose(-2, -1)) * factor;
  if (bias.defined())
    scores =
        bias.scalar_type() == at::kBool ? scores.masked_fill(bias.logical_not(), hidden) : scores + inAccumulator(bias);
  if (!isCausal) return scores;
  const auto above = at::ones({q.size(-2), k.size(-2)}, scores.options().dtype(at::kBool)).triu(1);
  return scores.masked_fill(above, hidden);
}

}  // namespace retrograd

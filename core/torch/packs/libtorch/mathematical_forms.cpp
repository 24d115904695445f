#include "core/torch/packs/libtorch/mathematical_forms.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <tuple>
#include <vector>

#include "core/torch/packs/libtorch/attention.h"

namespace retrograd {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

std::set<std::string>& used() {
  thread_local std::set<std::string> names;
  return names;
}

bool wantsGradient(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

/// Whether the derivative of a call with these tensors will be asked for. Notes it.
template <class... Tensors>
bool isDifferentiated(const char* op, const Tensors&... tensors) {
  if (!at::GradMode::is_enabled() || !(... || wantsGradient(tensors))) return false;
  used().insert(std::string("aten.") + op);
  return true;
}

template <class Signature, class... Arguments>
auto callBelow(const char* op, const Arguments&... arguments) {
  at::AutoDispatchBelowADInplaceOrView below;
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("aten::") + op).c_str(), "")
      .typed<Signature>()
      .call(arguments...);
}

// --- attention ---

/// Gradients of query, key, value and of the scores, which are the bias's before it was broadcast: softmax(query key^T
/// scale + bias) value.
Four attentionBackward(const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value, const at::Tensor& bias, bool isCausal, std::optional<double> scale) {
  const auto sharedHeads = key.size(-3);
  const auto g = inAccumulator(gradient);
  const AttentionOperands of(query, key, value, scale);
  const auto weights = at::_safe_softmax(of.scores(bias, isCausal), -1);
  const auto ofWeights = g.matmul(of.v.transpose(-2, -1));
  const auto ofScores = weights * (ofWeights - (weights * ofWeights).sum(-1, true));
  return {(ofScores.matmul(of.k) * of.factor).to(query.scalar_type()),
          overSharingHeads(ofScores.transpose(-2, -1).matmul(of.q) * of.factor, sharedHeads).to(key.scalar_type()),
          overSharingHeads(weights.transpose(-2, -1).matmul(g), sharedHeads).to(value.scalar_type()), ofScores};
}

/// The CPU's fused attention, in a file that runs on a GPU: its kernel is not there. Laid out as that lays it out, the
/// output as the query and the logarithms with heads within positions, because the file's views are made for that.
Two flashForward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout, bool isCausal,
                 const OptionalTensor& mask, std::optional<double> scale) {
  TORCH_CHECK(dropout == 0, "attention with dropout has no fused kernel on the CPU");
  const AttentionOperands of(query, key, value, scale);
  const auto scores = of.scores(mask.value_or(at::Tensor()), isCausal);
  const auto output = at::_safe_softmax(scores, -1).matmul(of.v).to(query.scalar_type());
  const auto headsInside = [](const at::Tensor& tensor) { return tensor.transpose(1, 2).contiguous().transpose(1, 2); };
  return {query.transpose(1, 2).is_contiguous() ? headsInside(output) : output.contiguous(),
          headsInside(scores.logsumexp(-1))};
}

constexpr auto flashOfCpu = "_scaled_dot_product_flash_attention_for_cpu";
constexpr auto flash = "_scaled_dot_product_flash_attention_for_cpu_backward";

Three flashBackward(const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& output, const at::Tensor& logsumexp, double dropout, bool isCausal,
                    const OptionalTensor& mask, std::optional<double> scale) {
  const auto bias = mask.value_or(at::Tensor());
  if (dropout == 0 && (gradient.is_cuda() || isDifferentiated(flash, gradient, query, key, value, bias))) {
    const auto [ofQuery, ofKey, ofValue, ofScores] =
        attentionBackward(gradient, query, key, value, bias, isCausal, scale);
    return {ofQuery, ofKey, ofValue};
  }
  return callBelow<decltype(flashBackward)>(flash, gradient, query, key, value, output, logsumexp, dropout, isCausal,
                                            mask, scale);
}

constexpr auto efficient = "_scaled_dot_product_efficient_attention_backward";

Four efficientBackward(const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value, const at::Tensor& bias, const at::Tensor& output,
                       const at::Tensor& logsumexp, const at::Tensor& seed, const at::Tensor& offset, double dropout,
                       std::array<bool, 4> wanted, bool isCausal, std::optional<double> scale) {
  if (dropout == 0 && isDifferentiated(efficient, gradient, query, key, value, bias)) {
    auto [ofQuery, ofKey, ofValue, ofScores] = attentionBackward(gradient, query, key, value, bias, isCausal, scale);
    at::Tensor ofBias;
    if (wanted[3] && bias.defined()) ofBias = ofScores.sum_to_size(bias.sizes()).to(bias.scalar_type());
    return {wanted[0] ? ofQuery : at::Tensor(), wanted[1] ? ofKey : at::Tensor(), wanted[2] ? ofValue : at::Tensor(),
            ofBias};
  }
  return callBelow<decltype(efficientBackward)>(efficient, gradient, query, key, value, bias, output, logsumexp, seed,
                                                offset, dropout, wanted, isCausal, scale);
}

// --- hardsigmoid ---

at::Tensor hardsigmoidBackward(const at::Tensor& gradient, const at::Tensor& self) {
  if (!isDifferentiated("hardsigmoid_backward", gradient, self))
    return callBelow<decltype(hardsigmoidBackward)>("hardsigmoid_backward", gradient, self);
  const auto sloping = self.gt(-3).logical_and(self.lt(3));
  return at::where(sloping, gradient / 6, at::zeros_like(gradient));
}

// --- margin losses ---

constexpr auto multiMargin = "multi_margin_loss_backward";

/// The loss of a row is the mean over its other classes j of max(0, margin - x[target] + x[j])^p, times the target's
/// weight.
at::Tensor multiMarginBackward(const at::Tensor& gradient, const at::Tensor& self, const at::Tensor& target,
                               const at::Scalar& p, const at::Scalar& margin, const OptionalTensor& weight,
                               std::int64_t reduction) {
  if (!isDifferentiated(multiMargin, gradient, self))
    return callBelow<decltype(multiMarginBackward)>(multiMargin, gradient, self, target, p, margin, weight, reduction);
  const auto rows = self.dim() <= 1 ? self.reshape({1, -1}) : self;
  const auto classes = rows.size(1);
  const auto chosen = target.reshape({-1, 1});
  const auto excess = rows - rows.gather(1, chosen) + margin;
  const auto counts = excess.gt(0).logical_and(at::arange(classes, target.options()).ne(chosen)).to(rows.scalar_type());
  auto slope = p.toDouble() == 1 ? counts : 2 * excess * counts;
  if (weight && weight->defined()) slope = slope * weight->index_select(0, target.reshape({-1})).unsqueeze(1);
  slope = slope.scatter_add(1, chosen, -slope.sum(1, true));
  const auto parts = static_cast<double>(classes * (reduction == at::Reduction::Mean ? rows.size(0) : 1));
  return (slope / parts * (reduction == at::Reduction::None ? gradient.reshape({-1, 1}) : gradient))
      .reshape(self.sizes());
}

constexpr auto multilabelMargin = "multilabel_margin_loss_backward";

/// Linear in the gradient, and constant in `self` but for jumps.
at::Tensor multilabelMarginBackward(const at::Tensor& gradient, const at::Tensor& self, const at::Tensor& target,
                                    std::int64_t reduction, const at::Tensor& isTarget) {
  using Signature = decltype(multilabelMarginBackward);
  if (!isDifferentiated(multilabelMargin, gradient, self))
    return callBelow<Signature>(multilabelMargin, gradient, self, target, reduction, isTarget);
  const auto slope = callBelow<Signature>(multilabelMargin, at::ones_like(gradient).detach(), self.detach(), target,
                                          reduction, isTarget);
  return slope * (reduction == at::Reduction::None && self.dim() > 1 ? gradient.unsqueeze(1) : gradient);
}

// --- embedding bags ---

enum BagMode : std::int64_t { bagSum = 0, bagMean = 1, bagMax = 2 };

/// The bag that each index lies in.
at::Tensor bagsOf(const at::Tensor& indices, const at::Tensor& offsets) {
  return at::bucketize(at::arange(indices.size(0), offsets.options().dtype(at::kLong)), offsets.to(at::kLong),
                       /*out_int32=*/false, /*right=*/true) -
         1;
}

at::Tensor bagBackwardFormula(const at::Tensor& gradient, const at::Tensor& indices, const at::Tensor& bags,
                              const at::Tensor& bagSizes, const at::Tensor& maximum, std::int64_t rows,
                              bool byFrequency, std::int64_t mode, const OptionalTensor& weights,
                              std::int64_t padding) {
  const auto zeros = at::zeros({rows, gradient.size(1)}, gradient.options().requires_grad(false));
  if (mode == bagMax) {
    const auto filled = gradient * bagSizes.ne(0).unsqueeze(1).to(gradient.scalar_type());
    return zeros.scatter_add(0, maximum.to(at::kLong).clamp_min(0), filled);
  }
  const auto counts = indices.ne(padding).to(gradient.scalar_type());
  auto factor = counts;
  if (weights && weights->defined()) factor = factor * *weights;
  if (mode == bagMean) {
    const auto sizes = at::zeros({gradient.size(0)}, counts.options()).index_add(0, bags, counts).clamp_min(1);
    factor = factor / sizes.index_select(0, bags);
  }
  if (byFrequency)
    factor = factor /
             at::zeros({rows}, counts.options()).index_add(0, indices, at::ones_like(counts)).index_select(0, indices);
  return zeros.index_add(0, indices, gradient.index_select(0, bags) * factor.unsqueeze(1));
}

constexpr auto bag = "_embedding_bag_backward";

at::Tensor bagBackward(const at::Tensor& gradient, const at::Tensor& indices, const at::Tensor& offsets,
                       const at::Tensor& bags, const at::Tensor& bagSizes, const at::Tensor& maximum,
                       c10::SymInt rows,  // NOLINT(performance-unnecessary-value-param): LibTorch's signature
                       bool byFrequency, std::int64_t mode, bool sparse, const OptionalTensor& weights,
                       std::int64_t padding) {
  if (!sparse && isDifferentiated(bag, gradient, weights.value_or(at::Tensor())))
    return bagBackwardFormula(gradient, indices, bagsOf(indices, offsets), bagSizes, maximum, rows.expect_int(),
                              byFrequency, mode, weights, padding);
  return callBelow<decltype(bagBackward)>(bag, gradient, indices, offsets, bags, bagSizes, maximum, rows, byFrequency,
                                          mode, sparse, weights, padding);
}

constexpr auto denseBag = "_embedding_bag_dense_backward";

at::Tensor denseBagBackward(const at::Tensor& gradient, const at::Tensor& indices, const at::Tensor& bags,
                            const at::Tensor& bagSizes, const at::Tensor& maximum,
                            c10::SymInt rows,  // NOLINT(performance-unnecessary-value-param): LibTorch's signature
                            bool byFrequency, std::int64_t mode, const OptionalTensor& weights, std::int64_t padding) {
  if (isDifferentiated(denseBag, gradient, weights.value_or(at::Tensor())))
    return bagBackwardFormula(gradient, indices, bags, bagSizes, maximum, rows.expect_int(), byFrequency, mode, weights,
                              padding);
  return callBelow<decltype(denseBagBackward)>(denseBag, gradient, indices, bags, bagSizes, maximum, rows, byFrequency,
                                               mode, weights, padding);
}

constexpr auto bagWeights = "_embedding_bag_per_sample_weights_backward";

at::Tensor bagWeightsBackward(const at::Tensor& gradient, const at::Tensor& weight, const at::Tensor& indices,
                              const at::Tensor& offsets, const at::Tensor& bags, std::int64_t mode,
                              std::int64_t padding) {
  if (!isDifferentiated(bagWeights, gradient, weight))
    return callBelow<decltype(bagWeightsBackward)>(bagWeights, gradient, weight, indices, offsets, bags, mode, padding);
  const auto products = (gradient.index_select(0, bagsOf(indices, offsets)) * weight.index_select(0, indices)).sum(1);
  return products * indices.ne(padding).to(products.scalar_type());
}

// --- segment_reduce ---

constexpr auto segments = "_segment_reduce_backward";

/// Of each element along `axis` its segment's number and whether it lies in one, in data's shape.
std::pair<at::Tensor, at::Tensor> segmentsOf(const at::Tensor& data, const OptionalTensor& lengths,
                                             const OptionalTensor& offsets, std::int64_t axis) {
  const bool byOffsets = offsets && offsets->defined();
  const auto ends = byOffsets ? offsets->slice(-1, 1) : lengths->cumsum(-1);
  auto sizes = ends.sizes().vec();
  sizes.back() = data.size(axis);
  const auto positions = at::arange(data.size(axis), ends.options()).expand(sizes);
  auto number = at::searchsorted(ends.contiguous(), positions.contiguous(), /*out_int32=*/false, /*right=*/true);
  auto inside = number.lt(ends.size(-1));
  if (byOffsets) inside = inside.logical_and(positions.ge(offsets->slice(-1, 0, 1)));
  number = number.clamp_max(ends.size(-1) - 1);
  while (number.dim() < data.dim()) {
    number = number.unsqueeze(-1);
    inside = inside.unsqueeze(-1);
  }
  return {number.expand(data.sizes()), inside.expand(data.sizes())};
}

at::Tensor segmentBackward(const at::Tensor& gradient, const at::Tensor& output, const at::Tensor& data,
                           c10::string_view reduce, const OptionalTensor& lengths, const OptionalTensor& offsets,
                           std::int64_t axis, const std::optional<at::Scalar>& initial) {
  if (axis < 0) axis += data.dim();
  const bool isSum = reduce == "sum", isMean = reduce == "mean", isExtreme = reduce == "max" || reduce == "min";
  if (!(isSum || isMean || isExtreme) || !isDifferentiated(segments, gradient, data))
    return callBelow<decltype(segmentBackward)>(segments, gradient, output, data, reduce, lengths, offsets, axis,
                                                initial);
  const auto [number, inside] = segmentsOf(data, lengths, offsets, axis);
  const auto within = inside.to(gradient.scalar_type());
  const auto perSegment = [&](const at::Tensor& elements) {
    return at::zeros(gradient.sizes(), elements.options().requires_grad(false))
        .scatter_add(axis, number, elements)
        .clamp_min(1)
        .gather(axis, number);
  };
  auto arriving = gradient.gather(axis, number) * within;
  if (isSum) return arriving;
  if (isMean) return arriving / perSegment(within);
  const auto chosen = data.detach().eq(output.detach().gather(axis, number)).to(gradient.scalar_type()) *
                      within;  // equal ones share the gradient
  return arriving * chosen / perSegment(chosen);
}

}  // namespace

void registerMathematicalForms() {
  static const auto libraries = [] {
    std::vector<torch::Library> registered;
    for (auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA}) {
      auto& library = registered.emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
      library.impl(flash, flashBackward);
      library.impl(efficient, efficientBackward);
      library.impl("hardsigmoid_backward", hardsigmoidBackward);
      library.impl(multiMargin, multiMarginBackward);
      library.impl(multilabelMargin, multilabelMarginBackward);
      library.impl(bag, bagBackward);
      library.impl(denseBag, denseBagBackward);
      library.impl(bagWeights, bagWeightsBackward);
      library.impl(segments, segmentBackward);
      if (key == c10::DispatchKey::AutogradCUDA) library.impl(flashOfCpu, flashForward);
    }
    return registered;
  }();
  (void)libraries;
}

std::set<std::string> takeMathematicalForms() { return std::exchange(used(), {}); }

}  // namespace retrograd

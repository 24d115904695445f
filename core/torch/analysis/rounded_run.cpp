#include "core/torch/analysis/rounded_run.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <random>

#include "core/torch/execution/evaluator.h"
#include "core/trace/implied.h"

namespace retrograd {
namespace {

/// The tensor with one element of `share`, and at least one, a rounding step off. Two ways to write a formula in
/// float32 differ by few of its steps, so that only few elements round to another number of 16 bits.
at::Tensor fewRoundedOtherwise(const at::Tensor& tensor, std::uint64_t seed) {
  constexpr std::int64_t share = 64;
  auto moved = tensor.clone(at::MemoryFormat::Contiguous);
  if (moved.numel() == 0) return moved;
  auto* words = static_cast<std::uint16_t*>(moved.data_ptr());
  const std::uint16_t exponent = tensor.scalar_type() == at::kBFloat16 ? 0x7f80 : 0x7c00;
  std::mt19937_64 bits(seed);
  for (std::int64_t first = 0; first < moved.numel(); first += share) {
    const auto drawn = bits();
    auto& word = words[first + static_cast<std::int64_t>(drawn >> 1) % std::min(share, moved.numel() - first)];
    const bool isZero = (word & 0x7fff) == 0, isFinite = (word & exponent) != exponent;
    if (!isZero && isFinite) word = static_cast<std::uint16_t>((drawn & 1) != 0 ? word + 1 : word - 1);
  }
  if (!tensor.is_non_overlapping_and_dense()) return moved;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(moved);
}

}  // namespace

RunResult runJointRounded(const Analysis& analysis, std::uint64_t seed, bool backwardOnly) {
  const auto& document = *analysis.document;
  return runJoint(analysis, [&](Evaluator& evaluator, BoundSymbolId op) {
    const auto& bound = document.boundSymbol(op);
    if ((backwardOnly && !isBackward(bound.origin.role)) || document.symbol(bound.symbol).isView) return;
    for (const auto output : document.outputs(op)) {
      if (!output || !evaluator.has(output) || !evaluator.value(output).isTensor()) continue;
      const auto tensor = evaluator.tensor(output);
      if (tensor.scalar_type() != at::kBFloat16 && tensor.scalar_type() != at::kHalf) continue;
      evaluator.bind(output, fewRoundedOtherwise(tensor, ++seed));
    }
  });
}

}  // namespace retrograd

#include "core/torch/analysis/rounded_run.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/rand.h>

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

/// The tensor with each element up to three steps off, as the exponentials and sums of two libraries are; what is 0, or
/// not finite, stays.
at::Tensor eachRoundedOtherwise(const at::Tensor& tensor, std::uint64_t seed) {
  constexpr double steps = 3;
  const auto step = tensor.scalar_type() == at::kDouble ? 0x1p-52 : 0x1p-23;
  const auto drawn = at::rand(tensor.sizes(), at::detail::createCPUGenerator(seed), tensor.options());
  auto moved = tensor * (1 + (drawn * 2 - 1) * (steps * step));
  if (!tensor.is_non_overlapping_and_dense()) return moved;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(moved);
}

template <class Round>
RunResult runRounded(const Analysis& analysis, bool backwardOnly, Round&& round) {
  const auto& document = *analysis.document;
  return runJoint(analysis, [&](Evaluator& evaluator, BoundSymbolId op) {
    const auto& bound = document.boundSymbol(op);
    if ((backwardOnly && !isBackward(bound.origin.role)) || document.symbol(bound.symbol).isView) return;
    for (const auto output : document.outputs(op)) {
      if (!output || !evaluator.has(output) || !evaluator.value(output).isTensor()) continue;
      if (const auto rounded = round(evaluator.tensor(output)); rounded.defined()) evaluator.bind(output, rounded);
    }
  });
}

}  // namespace

RunResult runJointRounded(const Analysis& analysis, std::uint64_t seed, bool backwardOnly) {
  return runRounded(analysis, backwardOnly, [&](const at::Tensor& tensor) {
    const bool isHalf = tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
    return isHalf ? fewRoundedOtherwise(tensor, ++seed) : at::Tensor();
  });
}

RunResult runRoundedByStep(const Analysis& analysis, std::uint64_t seed) {
  return runRounded(analysis, false, [&](const at::Tensor& tensor) {
    const bool isFull = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
    return isFull && tensor.layout() == at::kStrided ? eachRoundedOtherwise(tensor, ++seed) : at::Tensor();
  });
}

}  // namespace retrograd

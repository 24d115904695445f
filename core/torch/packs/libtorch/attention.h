#pragma once
// Only .cpp files of this folder include this: it shows LibTorch's types.
#include <ATen/core/Tensor.h>

#include <optional>

namespace retrograd {

/// Fused kernels add up numbers of 16 bits in float.
at::Tensor inAccumulator(const at::Tensor& tensor);

/// The gradient of keys or values that several heads of queries share: summed over the heads that share one of `heads`.
at::Tensor overSharingHeads(const at::Tensor& gradient, std::int64_t heads);

/// Queries, keys and values as one head of keys and values for each of queries, in the accumulator's type.
struct AttentionOperands {
  AttentionOperands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    std::optional<double> scale);

  /// query key^T scale + bias, minus infinity where a mask or causality hides a key. `bias` may be undefined.
  at::Tensor scores(const at::Tensor& bias, bool isCausal) const;

  const at::Tensor q, k, v;
  const double factor;  ///< the scale; one over the root of a head's width, where none is given
};

/// Gives the fused attention of GPUs (flash, memory-efficient, cuDNN) and its backward a kernel on the CPU and shapes,
/// by their formulas: softmax(query key^T scale + bias) value. Logsumexp, seed and offset are as on a GPU in shape and
/// meaning: what reads the seed draws the same dropout mask again, though another than a GPU's. Registered once;
/// calling it again does nothing.
void registerAttentionKernels();

}  // namespace retrograd

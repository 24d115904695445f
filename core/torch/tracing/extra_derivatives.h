#pragma once

namespace retrograd {

/// Derivatives that LibTorch lacks and exported graphs need: `aten.copy`, which functionalised graphs are full of, and
/// `rrelu_with_noise_functional`, `embedding_renorm`, `as_strided_scatter`, and our own `with_gradient_of`. Registered once, on first use; calling it again
/// does nothing.
void registerExtraDerivatives();

}  // namespace retrograd

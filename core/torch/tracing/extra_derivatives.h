#pragma once

namespace retrograd {

/// Derivatives that LibTorch lacks and exported graphs need: `aten.copy`, which functionalised graphs are full of, and
/// `rrelu_with_noise_functional`, `embedding_renorm`, `as_strided_scatter`, `unfold_backward`, and our own
/// `with_gradient_of`; with them those that have formulas in other ops (mathematical_forms.h). Registered once, on
/// first use; calling it again does nothing.
void registerExtraDerivatives();

}  // namespace retrograd

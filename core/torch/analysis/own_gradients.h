#pragma once
#include "core/derivation/analysis.h"

namespace retrograd {

/// Gradients that a file computes itself, as a program that was exported with its backward does (its outputs
/// GRADIENT_TO_PARAMETER and GRADIENT_TO_USER_INPUT): "p.w", "in.x", as RunResult names gradients. Those of the names
/// of a tied parameter are added up under the first. Runs the joint trace; empty, without a run, where the file has
/// none.
TensorMap ownGradients(const Analysis& analysis);

}  // namespace retrograd

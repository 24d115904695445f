#pragma once
#include "core/derivation/analysis.h"

namespace retrograd {

/// Chooses what flows into the computation: given inputs (checked against the file's dtype and shape, laid out in its
/// strides), else drawn in the shape asked for, else the archive's sample inputs, else drawn from the seed (floating
/// and complex: normal; integers and booleans: 0 or 1). Where the file was traced, what it was traced on: nothing else
/// fits its literals. Fills Analysis::inputs, numbers and inputSource. Throws Error(badUse) naming the input.
void chooseInputs(Analysis& analysis, const DerivationRequest& request);

/// The request with the inputs of its batch (GivenData), where it does not give them itself. Notes what was left out in
/// the analysis' problems. Throws Error as readBatch().
DerivationRequest withBatch(Analysis& analysis, const DerivationRequest& request, const Progress& progress);

/// A tensor as something described by `wanted` takes it: dtype and shape checked, laid out in those strides. `what`
/// names it in errors. Throws Error(badUse).
TensorData fittedInput(const TensorData& tensor, const TensorMeta& wanted, const std::string& what);

/// Parameters, buffers and constants that a text only describes and nobody gave, drawn from the seed: parameters normal
/// and so scaled that a matrix product keeps the size of numbers, other floating tensors uniform from 0.5 to 1.5 (they
/// may be variances), integers and booleans 0 or 1. Tied ones share memory. Says so in Analysis::inputSource. More than
/// 8 GiB are not drawn: such a model can be seen, not run.
void drawWeights(Analysis& analysis, std::uint64_t seed);

/// Cotangents for the outputs that have one: given, else 1 for a single scalar output, else drawn from the seed.
/// `metas`: by position among the user outputs, none where there is no cotangent.
void chooseCotangents(Analysis& analysis, const DerivationRequest& request,
                      const std::map<std::string, TensorMeta>& metas);

}  // namespace retrograd

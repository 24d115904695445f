#pragma once
#include <vector>

#include "core/base/id_vector.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// The gradient of a parameter, an input or a value of the forward: the sum where several were added up. None where
/// there is none.
ValueId gradientOf(const Analysis& analysis, ValueId value);

/// gradientOf() of every value, with one look at the trace for all.
IdVector<ValueId, ValueId> gradientsOfValues(const Analysis& analysis);

/// gradientOf() of each input of the computation, with one look at the trace for all.
std::vector<ValueId> gradientsOfInputs(const Analysis& analysis);

/// The gradients that were added up to it, in that order; the gradient itself where there is just one, nothing where
/// there is none.
std::vector<ValueId> gradientTermsOf(const Analysis& analysis, ValueId value);

/// The value of the forward whose gradient this is, as the backward op that makes it says; none for other values.
ValueId valueOfGradient(const Analysis& analysis, ValueId gradient);

}  // namespace retrograd

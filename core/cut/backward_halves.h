#pragma once
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// A backward in two, for schedules that let a stage send its inputs' gradients before it computes its parameters'
/// (zero bubble).
struct BackwardHalves {
  Trace inputGradients;   ///< dI: takes what the backward takes; returns the gradients of stage inputs, then what dW
                          ///< needs of its own values
  Trace weightGradients;  ///< dW: takes what was saved for it and what dI made; returns the gradients of parameters
};

/// Parts `backward` by what its results are for: `isInput[i]` says that result i is the gradient of a stage input.
/// Every op is in one of the halves, none in both; what both need is in dI. Ops that write in place, what has to do
/// with their memory, and draws stay in dI, in their order, so that nobody sees another content. Ids, and with them
/// origins, are those of the backward (instead of hooks on LibTorch's graph).
BackwardHalves splitBackward(const Document& document, const Trace& backward, const std::vector<char>& isInput);

}  // namespace retrograd

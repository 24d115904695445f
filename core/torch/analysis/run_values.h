#pragma once
#include <map>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Every value that forward and backward compute, as it was right after its op ran; views of inputs and weights are
/// left out.
struct RunValues {
  std::map<ValueId, TensorData> tensors;  ///< views of one storage share memory, unless some op writes to it
  std::map<ValueId, Argument> numbers;
};

/// Runs forward and backward once. Throws Error(execution, cancelled) as Session does.
RunValues runValues(const Analysis& analysis, const Progress& progress = {});

}  // namespace retrograd

#pragma once
#include <optional>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// Outputs and gradients of one run, named as Session names them: "in.x", "p.weight"; "b.buffer", "in.x" for what was
/// mutated.
struct RunResult {
  std::vector<std::optional<TensorData>> outputs;  ///< user outputs in order
  TensorMap gradients;
  TensorMap mutated;
};

}  // namespace retrograd

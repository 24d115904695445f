#pragma once
#include <cstdint>
#include <map>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// What goes over the borders of a stage for one microbatch: by the stage at the other end, tensors by name. A tensor
/// that is not there is None: a gradient that nothing asks for is neither sent nor filled with zeros.
using StageValues = std::map<std::int32_t, TensorMap>;

/// Computes stages. What a forward leaves for its backward, the loss, and the gradients of parameters, summed over
/// microbatches, stay in here.
class StageRunner {
 public:
  virtual ~StageRunner() = default;
  /// Runs the stage's forward on what came from each stage that feeds it; returns what each stage that it feeds gets.
  virtual StageValues forward(std::int32_t stage, std::int32_t microbatch, StageValues inputs) = 0;
  /// Gradients of the inputs, by the stage they came from, given those of the outputs by the stage they went to; adds
  /// up those of the parameters.
  virtual StageValues backward(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) = 0;
  /// The same in two parts: gradients of the inputs first, those of the parameters later.
  virtual StageValues backwardInput(std::int32_t stage, std::int32_t microbatch, StageValues cotangents) = 0;
  virtual void backwardWeight(std::int32_t stage, std::int32_t microbatch) = 0;
};

}  // namespace retrograd

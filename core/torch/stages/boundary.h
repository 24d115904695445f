#pragma once
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/cut/pipeline_split.h"
#include "core/cut/stage_model.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// What crosses the borders of a pipeline in one forward, by source stage and output there.
struct BorderValues {
  std::map<std::pair<int, std::size_t>, TensorData> tensors;  ///< in the strides of the whole model, at offset 0
  std::map<std::pair<int, std::size_t>, Argument> numbers;
  std::set<std::pair<int, std::size_t>> requiresGrad;
};

/// Runs the stages' computations in order as eager PyTorch does, on the inputs, numbers and seed of `whole`, and says
/// of each value that is sent what it is and whether it requires a gradient. Throws Error(execution).
BorderValues borderValues(const Analysis& whole, const PipelineSplit& split, const std::vector<StageModel>& stages,
                          const std::vector<char>& differentiated);

/// Types and memory of the values that a printed computation does not describe, as an eager run on the inputs of
/// `whole` has them. `model` has the ids that `whole` has. Throws Error(execution).
void completeTypes(ModelFile& model, const Analysis& whole);

}  // namespace retrograd

#pragma once
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// A parameter or buffer that two checkpoints hold with other numbers.
struct WeightDifference {
  std::string name;    ///< "layers.0.weight"
  std::string module;  ///< "layers.0"; empty for the model's own
  double largest = 0;  ///< |a - b|, over finite elements
  double relative =
      0;  ///< largest, relative to the largest element of either; infinite for other shapes and for NaN on one side
  std::string note;  ///< "f32[2] against f32[3]", "not finite in the same places"; empty where numbers say all
};

/// Two sets of weights by name.
struct WeightComparison {
  std::size_t compared = 0;              ///< names that both have
  std::vector<WeightDifference> differ;  ///< by name, so that those of a module are together
  std::vector<std::string> onlyInA, onlyInB;
  double largest = 0;  ///< greatest `relative`
};

/// Compares in double precision what is not the same bit for bit; another dtype is not a difference.
WeightComparison compareWeights(const TensorMap& a, const TensorMap& b, const Progress& progress = {});

}  // namespace retrograd

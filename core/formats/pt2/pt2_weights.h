#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/formats/zip/archive.h"
#include "core/trace/tensor_data.h"

namespace retrograd::pt2 {

/// A tensor of the archive that the graph may take as parameter, buffer or constant.
struct Weight {
  TensorData tensor;
  std::string record;  ///< in the archive; equal ones are one storage
  bool requiresGrad = false;
  bool isParameter = false;
};

/// Weights (parameters, persistent buffers) and constants (other buffers, lifted tensors) by name. Nothing is copied:
/// tensors are regions of the mapped archive.
struct WeightTable {
  std::map<std::string, Weight, std::less<>> weights, constants;

  const Weight* find(std::string_view name) const;
};

/// Reads both configs of `model` and verifies that every record is there and as long as shape, strides and offset need.
WeightTable readWeights(const std::shared_ptr<const Archive>& archive, const std::string& model,
                        const Progress& progress);

}  // namespace retrograd::pt2

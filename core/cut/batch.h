#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// The dimension of a tensor along which a batch is cut, negative ones counted from the end; none: every microbatch
/// gets all of it.
using BatchDim = std::optional<std::int64_t>;

/// A batch in microbatches.
struct BatchCut {
  std::vector<TensorMap> microbatches;  ///< tensors by name, views of the batch's memory
  std::string fewerBecause;  ///< "mask has 1 along dimension 0"; empty where there are as many as were asked for
};

/// Cuts tensors as torch.tensor_split does: the first ones get one more where it does not come out even. `dims`: by
/// name; what is not listed is cut along dimension 0, and a tensor of no dimension goes to every microbatch. There are
/// as many microbatches as the least of the sizes cut allows, `microbatches` at most. Throws Error(badUse) naming the
/// tensor: no such tensor or dimension, nothing along it, or none that is cut.
BatchCut cutBatch(const TensorMap& batch, std::int64_t microbatches, const std::map<std::string, BatchDim>& dims = {});

}  // namespace retrograd

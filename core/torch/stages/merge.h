#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/trace/tensor_data.h"

namespace retrograd {

/// How the microbatches' results for one output become that of the batch.
struct Merge {
  enum class Kind : std::uint8_t {
    concatenate,  ///< along `dim`; tensors of no dimension, such as losses, become a list
    sum,
    mean,
    same  ///< one for all, which has to be the same in each
  };
  Kind kind = Kind::concatenate;
  std::int64_t dim = 0;
  bool operator==(const Merge&) const = default;
};

/// How an output is merged, by its position as text: concatenated along dimension 0 where nothing is said.
inline Merge mergeOf(const std::map<std::string, Merge>& merges, const std::string& output) {
  const auto found = merges.find(output);
  return found == merges.end() ? Merge() : found->second;
}

/// Whether what the microbatches give for an output becomes a list: tensors without a dimension, such as losses.
inline bool isListed(const TensorMeta& one, const Merge& merge) {
  return one.sizes.empty() && merge.kind == Merge::Kind::concatenate;
}

/// Throws Error(badUse) naming the output where shapes do not allow it, or where they are not all the same.
TensorData mergeOutputs(const std::string& name, const std::vector<TensorData>& parts, const Merge& merge);

/// The cotangents of the microbatches, given those of the batch by output: cut where outputs are concatenated, else the
/// same for each, of a mean a part of it. Throws Error(badUse) where one is not cut into as many as there are
/// microbatches.
std::vector<TensorMap> cutCotangents(const TensorMap& cotangents, std::size_t microbatches,
                                     const std::map<std::string, Merge>& merges);

/// `tensor` times `factor`.
TensorData scaledTensor(const TensorData& tensor, double factor);

}  // namespace retrograd

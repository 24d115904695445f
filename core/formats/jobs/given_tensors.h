#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/jobs/input_sources.h"
#include "core/trace/tensor_data.h"

namespace retrograd::jobs {

/// A job's weights and batch, from which the inputs of its compiled functions are taken by name. Both must outlive it.
class GivenTensors {
 public:
  GivenTensors(const TensorMap& weights, const TensorMap& batch);

  /// The tensor of a source, by any of its names (namesOf()); else the only one whose name ends with one of them, as
  /// those of a module that was compiled by itself; null where there is none. A tensor is given twice only where a
  /// second source wants its very name (tied weights).
  const TensorData* find(const InputSource& source);
  /// For a place in a list of inputs ("args.1"), which has no name of its own: the only tensor of the batch that nobody
  /// took and that has this type; null for another source, and where there are none or several. Call it when each
  /// source that has a name found its tensor. `name`: of that tensor.
  const TensorData* findByType(const InputSource& source, const TensorMeta& type, std::string& name);
  /// The beginnings of names, without the last point, below which the weights hold all of these names: "blocks.0",
  /// "blocks.1".
  std::vector<std::string> holdersOf(const std::vector<std::string>& names) const;

 private:
  struct Entry {
    std::string plain;  ///< plainName()
    const TensorData* tensor = nullptr;
    bool ofBatch = false, used = false;
  };
  std::vector<Entry> entries_;  ///< of the weights, then of the batch
  std::unordered_map<std::string, std::vector<std::size_t>> byName_;
};

}  // namespace retrograd::jobs

#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/base/tensor_statistics.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// Statistics of a value when it was made. `recorded` is false for what the run did not reach, numbers and undefined
/// tensors.
struct ValueRecord {
  bool recorded = false;
  TensorStatistics statistics;
  bool bad() const { return recorded && statistics.nan + statistics.inf > 0; }
};

/// A whole run, forward and backward, in statistics: small, whatever the tensors weigh.
struct RunRecord {
  IdVector<ValueId, ValueRecord> values;
  std::vector<double> seconds;  ///< by position of the joint
  /// What was in a value's memory when it was read, where an op had written there since the value was made. By the
  /// reader's position in the joint; results are read at the end, at the position behind the last op.
  std::map<std::pair<std::size_t, ValueId>, TensorStatistics> readLater;

  /// A record that says `recorded = false` for ids beyond the run.
  const ValueRecord& of(ValueId value) const {
    static const ValueRecord none;
    return values.contains(value) ? values[value] : none;
  }
  /// The same as the op at `position` read it.
  ValueRecord asRead(ValueId value, std::size_t position) const {
    const auto found = readLater.find({position, value});
    return found == readLater.end() ? of(value) : ValueRecord{true, found->second};
  }
};

}  // namespace retrograd

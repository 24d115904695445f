#pragma once
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
  /// A record that says `recorded = false` for ids beyond the run.
  const ValueRecord& of(ValueId value) const {
    static const ValueRecord none;
    return values.contains(value) ? values[value] : none;
  }
};

}  // namespace retrograd

#pragma once
#include <functional>
#include <map>
#include <vector>

#include "core/base/tensor_statistics.h"
#include "core/debug/analysis.h"

namespace retrograd {

/// Statistics of a value when it was made. `recorded` is false for what the run did not reach, numbers and undefined tensors.
struct ValueRecord {
  bool recorded = false;
  TensorStatistics statistics;
  bool bad() const { return recorded && statistics.nan + statistics.inf > 0; }
};

/// A whole run, forward and backward, in statistics: small, whatever the tensors weigh.
struct RunRecord {
  std::vector<ValueRecord> values;                 ///< by ValueId
  std::vector<double> seconds;                     ///< by position of the joint
  /// A record that says `recorded = false` for ids beyond the run.
  const ValueRecord& of(ValueId value) const {
    static const ValueRecord none;
    return value && static_cast<std::size_t>(value.index) < values.size() ? values[static_cast<std::size_t>(value.index)] : none;
  }
};

struct RecordOptions {
  /// Put in place of what the run computes, as soon as it is there: a saved tensor or an input to go on from.
  std::map<ValueId, TensorData> replaced;
  /// Called with each value as it is made, before it is let go; the tensor is only valid during the call.
  std::function<void(std::size_t position, ValueId value, const TensorData& tensor)> each;
};

/// Runs the joint trace, values let go after their last use, and keeps statistics of inputs and of each output. Throws
/// Error(execution) naming the op, Error(badUse) for a replacement of another shape or dtype, Error(cancelled).
RunRecord recordRun(const Analysis& analysis, const RecordOptions& options = {}, const Progress& progress = {});

/// The same for parts of a run one by one.
class Recording {
 public:
  explicit Recording(const Analysis& analysis, RecordOptions options = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  std::size_t position() const;
  /// Runs the next op. Throws as recordRun().
  void step();
  /// A copy of a value that is still held; nullopt otherwise.
  std::optional<TensorData> tensor(ValueId value) const;
  const RunRecord& record() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd

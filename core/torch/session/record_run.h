#pragma once
// Running the joint once for statistics of every value.
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/questions/run_record.h"

namespace retrograd {

struct RecordOptions {
  /// Put instead of what the run computes, as soon as it is there: a saved tensor or an input to go on from.
  std::map<ValueId, TensorData> replaced;
  /// Called with each value as it is made, before it is let go; the tensor is only valid during the call.
  std::function<void(std::size_t position, ValueId value, const TensorData& tensor)> each;
};

/// Runs the joint trace, values let go after their last use, and keeps statistics of inputs and of each output. Throws
/// Error(execution) naming the op, Error(badUse) for a replacement of another shape or dtype, Error(cancelled).
RunRecord recordRun(const Analysis& analysis, const RecordOptions& options = {}, const Progress& progress = {});

/// The same op by op.
class MeasuredRun {
 public:
  explicit MeasuredRun(const Analysis& analysis, RecordOptions options = {});
  ~MeasuredRun();
  std::size_t position() const;
  /// Runs the next op. Throws as recordRun().
  void step();
  /// A copy of a value that is still held; nullopt otherwise.
  std::optional<TensorData> tensor(ValueId value) const;
  /// What was recorded so far; waits for a GPU.
  const RunRecord& record() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd

#pragma once
// What a run reports of itself: values, why it stopped, what ops took.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/tensor_meta.h"
#include "core/base/tensor_statistics.h"
#include "core/trace/argument.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// What a session knows of a value at its present position.
struct ValueState {
  bool present = false;  ///< computed and not yet released
  std::string reason;    ///< why not: "not computed yet", "released after its last use"
  TensorMeta meta;
  std::optional<Argument> number;  ///< value that is not a tensor
};

enum class StopReason { step, breakpoint, badNumber, cursor, end, start, cancelled, error };
std::string_view name(StopReason);

/// What running one op took. Position i is the i-th op of forward followed by backward.
struct OpMeasure {
  double seconds = 0;  ///< on a GPU by its own clock, from the end of the op before it where ops run on without a stop
  std::int64_t outputBytes = 0;  ///< of storages the op allocated
  std::int64_t liveBytes = 0;    ///< of distinct live storages after the op, loaded weights and inputs not counted
};

/// Values as they were right before and right after one op of a run. Never changes; lives on the thread of the run.
class Moment {
 public:
  enum class Side : std::uint8_t { before, after };

  virtual ~Moment() = default;
  /// Whether the op put another content into this operand.
  virtual bool writes(ValueId value) const = 0;
  /// `reason` says why a value is not there: an output before the op, a value of another op, an op that fails.
  virtual ValueState state(ValueId value, Side side) const = 0;
  /// Throw Error(badUse) where the value is not a tensor that is there, Error(badInput) where a file that it lies in
  /// changed.
  virtual TensorStatistics statistics(ValueId value, Side side) const = 0;
  virtual TensorData contents(ValueId value, Side side) const = 0;
  virtual std::vector<std::int64_t> histogram(ValueId value, Side side, int bins) const = 0;
};

/// What became known of a run: numbers of the ops [begin, end) and of what they made. All that was known from
/// `begin` on before is out of date.
struct RunNews {
  std::size_t begin = 0, end = 0;
  std::vector<OpMeasure> measures;  ///< of these ops
  std::vector<std::pair<ValueId, TensorStatistics>>
      values;  ///< of tensors that they made; of inputs too where `begin` is 0
};

}  // namespace retrograd

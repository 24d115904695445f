#pragma once
// What a run reports of itself: values, why it stopped, what ops took.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/tensor_meta.h"
#include "core/trace/argument.h"

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

}  // namespace retrograd

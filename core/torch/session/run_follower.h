#pragma once
#include <ATen/core/ivalue.h>

#include <utility>
#include <vector>

#include "core/stepping/moment.h"
#include "core/torch/execution/evaluator.h"

namespace retrograd {

/// A content that somebody put into a value by hand.
struct ValueEdit {
  ValueId value;
  at::Tensor content;
};

/// Hears of all that a Session runs, on its thread. References are good during the call; tensors may be
/// held, as nothing writes to them but ops and contents put there by hand.
class RunFollower {
 public:
  virtual ~RunFollower() = default;
  /// The values that are bound before the first op. Called when the session gets the follower.
  virtual void begins(const std::vector<std::pair<ValueId, c10::IValue>>& /*given*/) {}
  /// The op at this position has run; nothing of it has been let go.
  virtual void ran(std::size_t position, const Evaluator& evaluator, const OpMeasure& measure) = 0;
  /// Another content is about to be written into the value's memory.
  virtual void willEdit(ValueId /*value*/) {}
  /// It is there since this position, before its op.
  virtual void edited(std::size_t /*position*/, const ValueEdit& /*edit*/, const Evaluator& /*evaluator*/) {}
  /// Values that were put in at this position or later have no effect any more.
  virtual void forgotEditsFrom(std::size_t /*position*/) {}
};

}  // namespace retrograd

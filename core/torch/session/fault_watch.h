#pragma once
#include <memory>

#include "core/questions/intended_infinities.h"

namespace retrograd {

class Evaluator;

/// Notices while a joint trace runs whether any of its values has a NaN, or an infinity that the model does not mean
/// (questions/intended_infinities.h). Reads each value once and keeps none; on a GPU, nothing waits until seen().
class FaultWatch {
 public:
  explicit FaultWatch(const Analysis& analysis);
  ~FaultWatch();

  /// The values that flow in, before the first op.
  void lookAtInputs(const Evaluator& evaluator);
  /// The outputs of an op that just ran.
  void look(const Evaluator& evaluator, BoundSymbolId op);
  bool seen();

 private:
  struct OnGpu;
  void lookAt(const Evaluator& evaluator, ValueId value);

  const Analysis& analysis_;
  std::unique_ptr<OnGpu> onGpu_;
  const IntendedInfinities intended_;
  bool seen_ = false;
};

}  // namespace retrograd

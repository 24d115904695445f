#pragma once
#include <set>

#include "core/questions/intended_infinities.h"
#include "core/questions/run_record.h"

namespace retrograd {

/// Which values of a recorded run hold a NaN, or an infinity that the model does not mean. Beyond what the trace alone
/// says (intended_infinities.h), an op that may pass a mask's infinities on is at fault where none of its operands had
/// any.
class Faults {
 public:
  Faults(const Analysis& analysis, const RunRecord& record);

  /// As the op at `position` of the joint read it; the number of ops represents the end of the run.
  bool isFault(ValueId value, std::size_t position) const;
  /// When it was made.
  bool isFault(ValueId value) const { return isFault(value, 0); }

 private:
  const RunRecord& record_;
  const IntendedInfinities intended_;
  std::set<ValueId> overflowed_;
};

}  // namespace retrograd

#pragma once
#include <string>
#include <vector>

#include "core/questions/run_record.h"

namespace retrograd {

/// One op on the way from a bad value to its root.
struct NanStep {
  BoundSymbolId op;  ///< that made `value`; none for an input
  ValueId value;     ///< with NaN or infinities
  TensorStatistics statistics;
};

/// From a value with NaN or Inf back to the op where finite inputs first gave a non-finite output.
struct NanWalk {
  std::vector<NanStep> path;      ///< the value asked for first, the root's output last
  BoundSymbolId root;             ///< none where an input, parameter or cotangent itself is bad
  std::vector<ValueId> operands;  ///< of the root, all finite but for infinities that are meant
  BoundSymbolId nanFrom;          ///< where NaN first came to be on the way, when the root made infinities only
  BoundSymbolId forward;    ///< computation op of the root: itself in the forward, over the origin link in the backward
  std::string explanation;  ///< "1 of 8 elements of self is 0"; empty where nothing stands out
};

/// Ops whose output is uninitialised memory are no root: what they hold is not yet meant; nor are infinities that the
/// model means (intended_infinities.h), unless the value asked for has only such. Throws Error(badUse) where the value
/// is finite or was not recorded.
NanWalk walkToRoot(const Analysis& analysis, const RunRecord& record, ValueId value);

/// The first value of the run with NaN, or with Inf that the model does not mean (intended_infinities.h); none where
/// there is none.
ValueId firstBadValue(const Analysis& analysis, const RunRecord& record);

/// What to walk from where no value is named: a bad result of the forward, for what is bad in the backward mostly
/// follows from it; else a bad gradient, the last first, which has the longest way behind it; else firstBadValue().
ValueId badValueToExplain(const Analysis& analysis, const RunRecord& record);

}  // namespace retrograd

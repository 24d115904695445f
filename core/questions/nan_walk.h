#pragma once
// Where NaN and infinities of a run are faults, and the way from a bad value to the ops that made it.
#include <set>
#include <string>
#include <vector>

#include "core/questions/intended_infinities.h"
#include "core/questions/run_record.h"

namespace retrograd {

/// One op on the way from a bad value to its root.
struct NanStep {
  BoundSymbolId op;  ///< that put its content into `value`: made it, or wrote to its memory; none for an input
  ValueId value;     ///< with NaN or infinities
  TensorStatistics statistics;
};

/// Where NaN or infinities come from: an op that turns finite inputs into them, or a value that comes in with them.
struct NanRoot {
  BoundSymbolId op;  ///< none where an input, parameter or cotangent itself is bad
  ValueId value;     ///< the op's result, or the value that comes in
  TensorStatistics statistics;
  BoundSymbolId forward;    ///< computation op of the root: itself in the forward, over the origin link in the backward
  std::string explanation;  ///< "1 of 8 elements of self is 0"; empty where nothing is remarkable
};

/// From a value with NaN or Inf back to the op where finite inputs first gave a non-finite output. Where memory was
/// written, each step goes by what it held when it was read.
struct NanWalk {
  std::vector<NanStep> path;      ///< the value asked for first, the root's output last
  BoundSymbolId root;             ///< none where an input, parameter or cotangent itself is bad
  std::vector<ValueId> operands;  ///< of the root, all finite but for infinities that are meant
  BoundSymbolId nanFrom;          ///< where NaN first was made on the way, when the root made infinities only
  BoundSymbolId forward;    ///< computation op of the root: itself in the forward, over the origin link in the backward
  std::string explanation;  ///< "1 of 8 elements of self is 0"; empty where nothing is remarkable
  std::vector<NanRoot> otherRoots;  ///< that the walk also leads to, in order of the run; one for each computation op
};

/// Ops whose output is uninitialised memory are never roots: their content means nothing yet; nor are infinities that
/// the model means (intended_infinities.h), unless the value asked for has only such. Throws Error(badUse) where it
/// is finite or was not recorded.
NanWalk walkToRoot(const Analysis& analysis, const RunRecord& record, ValueId value);
/// Where no value is named: the way from a bad result of the forward, for what is bad in the backward mostly follows
/// from it; else from a bad gradient, the last first, which has the longest way behind it; else from a buffer or an
/// input that the forward left bad; else from firstBadValue(). The roots of all bad results are its other roots. An
/// empty path where nothing is bad.
NanWalk walkToRoots(const Analysis& analysis, const RunRecord& record);

/// The first value of the run with NaN, or with Inf that the model does not mean (intended_infinities.h); none where
/// there is none.
ValueId firstBadValue(const Analysis& analysis, const RunRecord& record);

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

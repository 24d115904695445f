#pragma once
#include <vector>

#include "core/questions/run_record.h"

namespace retrograd {

/// One gradient that was summed into a value's.
struct GradientTerm {
  ValueId gradient;      ///< the term
  BoundSymbolId op;      ///< backward op that makes it; none for a cotangent
  BoundSymbolId origin;  ///< computation op whose derivative it is: where the value was used
  double norm = 0;       ///< 2-norm in the run; 0 where it was not recorded
};

/// How the gradient of a parameter, input or value of the computation came together.
struct GradientTerms {
  ValueId value, gradient;          ///< gradient: the sum; none where there is none
  std::vector<GradientTerm> terms;  ///< in order of addition: one for a value that is used once
  double norm = 0;                  ///< of the sum
};

/// `record`: of a run, for the norms.
GradientTerms gradientTerms(const Analysis& analysis, ValueId value, const RunRecord& record);

}  // namespace retrograd

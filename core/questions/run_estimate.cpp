#include "core/questions/run_estimate.h"

#include "core/split/op_cost.h"

namespace retrograd {

double estimatedSeconds(const Analysis& analysis) {
  constexpr double secondsForEachOp = 15e-6, bytesInASecond = 4e9;
  double bytes = 0;
  for (auto op : analysis.joint.ops) bytes += static_cast<double>(opCost(*analysis.document, op));
  return static_cast<double>(analysis.joint.ops.size()) * secondsForEachOp + bytes / bytesInASecond;
}

}  // namespace retrograd

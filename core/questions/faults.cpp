#include "core/questions/faults.h"

#include <algorithm>

namespace retrograd {

Faults::Faults(const Analysis& analysis, const RunRecord& record)
    : record_(record), intended_(analysis, [&](ValueId input) {
        const auto& entry = record.of(input);
        return !entry.recorded || entry.bad();
      }) {
  const auto& document = *analysis.document;
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    const auto op = analysis.joint.ops[i];
    const auto operands = document.operands(op);
    const auto makesInfinities = [&] {
      return !hasInfiniteLiteral(document, op) && std::none_of(operands.begin(), operands.end(), [&](ValueId operand) {
        return operand && record.asRead(operand, i).bad();
      });
    };
    for (auto output : document.outputs(op))
      if (output && record.of(output).bad() && intended_.mayHold(output) && makesInfinities())
        overflowed_.insert(output);
  }
}

bool Faults::isFault(ValueId value, std::size_t position) const {
  if (!value) return false;
  const auto entry = record_.asRead(value, position);
  return entry.bad() && (intended_.isFault(value, entry.statistics) || overflowed_.contains(value));
}

}  // namespace retrograd

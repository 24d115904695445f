#include "views/session/execution_state.h"

namespace retrograd::views {

std::set<BoundSymbolId> ExecutionState::stops() const {
  std::set<BoundSymbolId> ops;
  for (const auto& [op, mark] : marks_)
    if (mark == BreakpointMark::always) ops.insert(op);
  return ops;
}

void ExecutionState::setBreakpoints(std::vector<Breakpoint> breakpoints,
                                    std::map<BoundSymbolId, BreakpointMark> marks) {
  breakpoints_ = std::move(breakpoints);
  marks_ = std::move(marks);
  Q_EMIT breakpointsChanged();
}

void ExecutionState::setWatches(std::vector<ValueId> values) {
  if (values == watches_) return;
  watches_ = std::move(values);
  Q_EMIT watchesChanged();
}

void ExecutionState::setBadValues(std::set<ValueId> values) {
  if (values == badValues_) return;
  badValues_ = std::move(values);
  Q_EMIT badValuesChanged();
}

}  // namespace retrograd::views

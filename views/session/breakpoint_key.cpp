#include "views/session/breakpoint_key.h"

namespace retrograd::views {

std::vector<BreakpointKey> keysOf(const Analysis& analysis, const std::vector<Breakpoint>& breakpoints) {
  std::vector<BreakpointKey> keys;
  for (const auto& breakpoint : breakpoints) {
    BreakpointKey key;
    key.breakpoint = breakpoint;
    if (breakpoint.where == Breakpoint::Where::op) key.op = keyOf(analysis, breakpoint.op);
    if (breakpoint.where == Breakpoint::Where::value) key.value = keyOf(analysis, breakpoint.value);
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<Breakpoint> findKeys(const Analysis& analysis, const std::vector<BreakpointKey>& keys) {
  std::vector<OpKey> opKeys;
  std::vector<ValueKey> valueKeys;
  for (const auto& key : keys) {
    opKeys.push_back(key.op);
    valueKeys.push_back(key.value);
  }
  const auto ops = findKeys(analysis, opKeys);
  const auto values = findKeys(analysis, valueKeys);
  std::vector<Breakpoint> found;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto breakpoint = keys[i].breakpoint;
    breakpoint.op = breakpoint.where == Breakpoint::Where::op ? ops[i] : BoundSymbolId();
    breakpoint.value = breakpoint.where == Breakpoint::Where::value ? values[i] : ValueId();
    if (breakpoint.where == Breakpoint::Where::op && !breakpoint.op) continue;
    if (breakpoint.where == Breakpoint::Where::value && !breakpoint.value) continue;
    found.push_back(std::move(breakpoint));
  }
  return found;
}

}  // namespace retrograd::views

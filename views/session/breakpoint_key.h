#pragma once
#include <vector>

#include "core/derivation/op_key.h"
#include "core/stepping/breakpoint.h"

namespace retrograd::views {

using retrograd::findKeys;
using retrograd::keyOf;
using retrograd::OpKey;
using retrograd::ValueKey;

/// A breakpoint with what its place is called; kinds of ops and modules are names already.
struct BreakpointKey {
  Breakpoint breakpoint;
  OpKey op;
  ValueKey value;
};
std::vector<BreakpointKey> keysOf(const Analysis& analysis, const std::vector<Breakpoint>& breakpoints);
/// The breakpoints as they are in this analysis; those whose place is gone are left out.
std::vector<Breakpoint> findKeys(const Analysis& analysis, const std::vector<BreakpointKey>& keys);

}  // namespace retrograd::views

#pragma once
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// The ops of the computation that words name, one after another: `#12`, a value's name (the op that makes it), `#12 to
/// #20`, `module layers.0` (its first to its last), or `all`. An op of a trace represents the one it comes from; one
/// inside a body (a branch of cond) for the op that holds the body. Throws Error(badUse) that says what was expected,
/// or what is not there.
std::vector<BoundSymbolId> opRange(const Analysis& analysis, const std::string& words);

}  // namespace retrograd

#pragma once
#include <cstdint>
#include <string_view>

#include "core/trace/trace.h"

namespace retrograd {

/// What kind of work an op is, by its name.
enum class OpFamily : std::uint8_t { matrixProduct, convolution, attention, recurrent, solver, sorting, other };
OpFamily familyOf(std::string_view opName);

/// Families whose work is not worth saving bytes for, unless someone asks: all but `other`.
inline bool isHeavy(OpFamily family) { return family != OpFamily::other; }

/// A rough cost of running the op once, in bytes moved: what it reads and writes, and its arithmetic at four operations
/// a byte. At least 1; only meant to compare ops of one trace.
std::int64_t opCost(const Document& document, BoundSymbolId op);

/// Seconds that one run of a joint takes, statistics of all values included, guessed from the trace alone: right within
/// some three times on a present processor.
double estimatedSeconds(const Document& document, const Trace& joint);

}  // namespace retrograd

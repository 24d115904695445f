#pragma once
#include "core/derivation/analysis.h"

namespace retrograd {

/// Seconds that one run of forward and backward takes, statistics of all values included, guessed from the traces
/// alone: right within some three times on a present processor.
double estimatedSeconds(const Analysis& analysis);

}  // namespace retrograd

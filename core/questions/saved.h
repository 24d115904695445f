#pragma once
#include "core/derivation/analysis.h"
#include "core/split/saved_values.h"

namespace retrograd {

/// What the forward of a model saves for its backward; nothing where no backward was derived.
SavedValues savedValues(const Analysis& analysis);

}  // namespace retrograd

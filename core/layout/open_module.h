#pragma once
#include <string_view>

#include "core/layout/shape.h"

namespace retrograd::layout {

/// Opens the groups that hold nothing but ops of this module ("h.3"; what is below it included), each call of it, and
/// what is around them, so that one sees what the module consists of. False where no op of the trace is in such a
/// module.
bool openModule(const GraphTree& tree, Folds& open, std::string_view path);
/// Everything open.
Folds allOpen(const GraphTree& tree);

}  // namespace retrograd::layout

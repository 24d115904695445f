#pragma once
#include <optional>
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

/// The first op of the graph as written that converts to less than double whatever flows in (`x.to(torch.float32)`), or
/// keeps less than double although all that flows in is double. PyTorch's own run in double rounds there; nullopt where
/// there is none.
std::optional<std::string> pinnedPrecision(const Analysis& asWritten, const Analysis& inDouble);

}  // namespace retrograd

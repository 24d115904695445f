#pragma once
#include <string>

#include "core/base/progress.h"

namespace retrograd::cli {

/// `trace --ranks`: the ops of all ranks of a recorded run, one line where all ranks run the same op, side by side
/// where they part.
void printRanks(const std::string& folder, const Progress& progress);

}  // namespace retrograd::cli

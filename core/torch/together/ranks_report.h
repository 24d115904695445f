#pragma once
#include <memory>
#include <vector>

#include "core/judge/report.h"
#include "core/questions/ranks/meetings.h"

namespace retrograd {

/// The audit of all ranks of a recorded run (docs/ranks.md): whether they call the same collectives, whether these gave
/// what the ranks put in, whether gradients are put together as one process on the whole batch would have them, whether
/// weights that are one stay one. Each rank runs again by itself, one after the other. `single`: a recording of one
/// process on the whole batch, whose gradients are compared, too; may be null. Throws Error(cancelled).
Report reportOfRanks(const std::string& folder, const std::vector<std::shared_ptr<const Analysis>>& ranks,
                     const std::shared_ptr<const Analysis>& single = nullptr, const Progress& progress = {});

}  // namespace retrograd

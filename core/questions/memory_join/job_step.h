#pragma once
#include <string>

#include <optional>

#include "core/base/progress.h"
#include "core/questions/memory_join/traced_step.h"
#include "core/trace/symbol.h"

namespace retrograd {

/// What a compiled job's own graphs allocate, forward and backward, with the place of each op among the nodes of its
/// graph. `lookup` gives schemas; `compile` and `rank` choose as in jobs::chooseCompile(). Throws Error(badInput) for
/// what is not a log, or has no forward and backward graph.
TracedStep jobStep(const std::string& path, const SymbolLookup& lookup, const Progress& progress = {},
                   const std::string& compile = {}, std::optional<std::int64_t> rank = {});

/// Has the forward's makers be ops of the open analysis of the same log, by the names of the graph's nodes.
void showJobMakersIn(TracedStep& step, const Analysis& shown);

}  // namespace retrograd

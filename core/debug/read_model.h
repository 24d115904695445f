#pragma once
#include <string>

#include "core/debug/analysis.h"

namespace retrograd {

/// Reads a model of any kind that can be opened: a .pt2 as readModelFile() does; a TorchScript archive, after a process of its own has
/// tried LibTorch's compiler on it (probe.h), by tracing it on the inputs, numbers and shapes of `options`, drawn from its seed.
/// Throws Error naming the file; badUse where a TorchScript file needs inputs that `options` does not have, listing them.
ModelFile readModel(const std::string& path, const AnalysisOptions& options = {}, const Progress& progress = {});

}  // namespace retrograd

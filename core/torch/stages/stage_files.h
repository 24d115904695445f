#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/cut/pipeline_split.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// Derives the stages and writes each as a session file with its own weights, `stage_N.retrograd`, which opens as any
/// model does, with what this run sends it as its inputs; and `pipeline.json` (pipelineJson), which says how they hang
/// together. The folder is made where it is missing; files of these names are written over, each whole or not at all.
/// `model` is as it was read, and `split` has its ids. Throws Error(io) for folder or file, and as derivePipeline() and
/// saveSession() do.
void writeStages(ModelFile model, std::shared_ptr<const Analysis> whole, const PipelineSplit& split,
                 const std::vector<std::string>& notes, const std::string& folder, const Progress& progress = {});

}  // namespace retrograd

#pragma once
#include "core/torch/checking/check.h"
#include "core/torch/stages/open_pipeline.h"

namespace retrograd {

/// Reads, derives and cuts a model with the inputs, cotangents and seed that a check of it takes. Throws as openCut().
CutModel openForCheck(const std::string& path, const CutRequest& request, const CheckOptions& options,
                      const Progress& progress = {});

/// Cuts a model, derives and runs its stages in sequence, forwards and then backwards, and compares outputs, gradients
/// of all parameters and inputs (replicas summed) and mutations with those of the model in one piece: bit for bit, and
/// where that is not so within the tolerances of checkModel(). Inputs, cotangents and seed are those of
/// `options.reference`, where there is one. Throws Error(badUse) where the model cannot be cut like that, naming the op
/// and the reason.
Report checkPipeline(const std::string& path, const CutRequest& request, const CheckOptions& options,
                     const Progress& progress = {});

}  // namespace retrograd

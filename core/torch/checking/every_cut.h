#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/torch/checking/pipeline_check.h"

namespace retrograd {

/// Cuts a model in two before each of its ops in turn, and compares the stages with the model in one piece, as
/// checkPipeline() does. One report for each cut, named "FILE at #OP": pass; skip, with the reason, where the cut is
/// refused (CheckStatus::skip); fail where the stages give anything else or cannot be run. `request` brings options, no
/// cuts; a file's own markers are left out. `tell` gets each report as it is made. Throws Error as openForCheck(),
/// cancelled.
std::vector<CheckReport> checkEveryCut(const std::string& path, CutRequest request, const CheckOptions& options,
                                       const std::function<void(const CheckReport&)>& tell,
                                       const Progress& progress = {});

}  // namespace retrograd

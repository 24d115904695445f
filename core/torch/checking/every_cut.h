#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/torch/checking/pipeline_check.h"

namespace retrograd {

/// Cuts a model in two before each of its ops in turn, and compares the stages with the model in one piece, as
/// checkStages() does. One report for each cut, of "FILE at #OP"; a cut that is refused was not judged, stages that
/// cannot be run are a fault. `request` brings options, no
/// cuts; a file's own markers are left out. `tell` gets each report as it is made. Throws Error as openForCheck(),
/// cancelled.
std::vector<Report> checkEveryCut(const std::string& path, CutRequest request, const CheckOptions& options,
                                  const std::function<void(const Report&)>& tell, const Progress& progress = {});

}  // namespace retrograd

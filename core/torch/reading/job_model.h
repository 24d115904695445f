#pragma once
#include <string>

#include "core/base/progress.h"
#include "core/formats/checkpoint/given_data.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// The forward graph of a compile in a log of torch.compile as a model, or its inference graph, or the forward part of
/// its joint graph. Its parameters, buffers and inputs have the names that they have in the Python program, as Dynamo
/// described them, without those that it only saves. A log has no data: weights and inputs are drawn unless they are
/// given. Throws Error(badInput) for what cannot be read or has none of these graphs, Error(badUse) where there is no
/// such compile.
ModelFile readJobModel(const std::string& path, const GivenData& data, const Progress& progress = {});

}  // namespace retrograd

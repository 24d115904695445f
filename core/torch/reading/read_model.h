#pragma once
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

struct FormatEntry;

/// Reads a model of any format (formats.h); that of a session file with the inputs it was saved with as sample inputs.
/// The weights of `request.data` take the place of the file's (formats/checkpoint/given_weights.h). Throws Error naming
/// the file.
ModelFile readModel(const std::string& path, const DerivationRequest& request = {}, const Progress& progress = {});
/// The same of a file whose format is known.
ModelFile readModel(const FormatEntry& format, const std::string& path, const DerivationRequest& request,
                    const Progress& progress);

}  // namespace retrograd

#pragma once
// The whole way from a file of any kind to an Analysis.
#include <memory>
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Reads a file of any kind (read_model.h) and derives joint, forward and backward (analyse.h). A session file
/// opens as it was saved; where `request` asks for anything, its model is derived again with that and what else it was
/// saved with. Throws Error (badInput, unsupportedOp, cancelled, ...) that names the file or the op.
std::shared_ptr<const Analysis> openModel(const std::string& path, const DerivationRequest& request = {},
                                          const Progress& progress = {});

}  // namespace retrograd

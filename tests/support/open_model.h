#pragma once
#include "core/torch/analysis/analyse.h"
#include "core/torch/reading/read_model.h"

namespace retrograd {

/// A model file read and derived.
inline std::shared_ptr<const Analysis> openModel(const std::string& path, const DerivationRequest& request = {},
                                                 const Progress& progress = {}) {
  return analyse(readModel(path, request, progress), request, progress);
}

}  // namespace retrograd

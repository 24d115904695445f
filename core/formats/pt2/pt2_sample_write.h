#pragma once
#include <string>

#include "core/formats/files/mapped_file.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// What torch.save writes of ((samples of the user's inputs in order), {}). Made in a file next to `path` that is gone
/// when this returns. Throws Error(unsupportedOp) for an input without a sample, or of a dtype that has no storage
/// class; Error(io).
ByteRegion sampleArchive(const ModelFile& model, const std::string& path);

}  // namespace retrograd

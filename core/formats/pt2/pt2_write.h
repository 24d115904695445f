#pragma once
#include <string>

#include "core/formats/model/model_file.h"

namespace retrograd {

/// Writes a computation as torch.export.save does (.pt2, schema 8): PyTorch 2.10 and later load it with
/// torch.export.load(), and readPt2() reads it back. All its inputs are tensors of the user, with the file's samples as
/// sample inputs; sizes are fixed. The file appears whole or not at all. Throws Error(unsupportedOp) naming what cannot
/// be written: weights, numbers that flow, bodies of higher-order ops, symbolic sizes; Error(io).
void writePt2(const ModelFile& model, const std::string& path);

}  // namespace retrograd

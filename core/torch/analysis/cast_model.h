#pragma once
#include "core/formats/model/model_file.h"

namespace retrograd {

/// Casts a model with its weights and constants from ownPrecision() (precision.h). Throws Error(badUse) for what is
/// none of precisions().
void castModel(ModelFile& file, DType precision);

/// A copy of a tensor in another dtype.
TensorData castTensor(const TensorData& tensor, DType dtype);

}  // namespace retrograd

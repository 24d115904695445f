#pragma once
#include "core/torch/grad/rule.h"

namespace retrograd {

/// linalg_svdvals, linalg_eigvalsh and what is made of them compute vectors where a gradient needs those, and take another routine of LAPACK where none does,
/// whose last bits differ. Recorded, they take the former always: PyTorch asks whether a tensor is that of a subclass, which tracing looks like. Puts the
/// latter where nothing reads the vectors.
void leaveVectorsOut(Document& document, std::string_view op, Rule& rule);

}  // namespace retrograd

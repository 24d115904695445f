#pragma once
#include <string>

#include "core/torch/session/session.h"

namespace retrograd {

/// Writes what a session ran on and what came of it as a reference file (see Reference), which `check --reference`
/// takes: in.*, cot.*, the results that are there (out.*), from the end of the forward on the buffers and inputs that
/// were written (mut.b.*, mut.in.*), after the end gradients (grad.in.*, grad.p.*). Complex tensors are written as
/// `view_as_real`. Throws Error(io).
void saveRun(const Session& session, const std::string& path);

/// Writes tensors under the names that they have there ("out.0", "grad.p.weight"). Throws Error(io).
void saveReference(const TensorMap& tensors, std::uint64_t seed, const std::string& path);

}  // namespace retrograd

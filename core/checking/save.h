#pragma once
#include <string>

#include "core/debug/session.h"

namespace retrograd {

/// Writes what a session ran on and what came of it as a reference file (see Reference): in.*, cot.*, and after the end out.*,
/// grad.in.*, grad.p.*, mut.*, so that `check --reference` takes it. Before the end: the results that are there (out.*).
/// Complex tensors are written as `view_as_real`. Throws Error(io).
void saveRun(const Session& session, const std::string& path);

/// Writes tensors under the names that they have there ("out.0", "grad.p.weight"). Throws Error(io).
void saveReference(const TensorMap& tensors, std::uint64_t seed, const std::string& path);

}  // namespace retrograd

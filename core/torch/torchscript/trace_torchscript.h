#pragma once
#include <memory>

#include "core/base/progress.h"
#include "core/derivation/trace_inputs.h"
#include "core/formats/model/model_file.h"
#include "core/formats/zip/archive.h"

namespace retrograd {

/// Compiles a TorchScript module and checks all that its forward can reach, running nothing of it. LibTorch's compiler
/// is not made for hostile code: this is what a child process tries first (torch/reading/probe.h). Throws
/// Error(badInput).
void checkTorchScript(const std::shared_ptr<const Archive>& archive);

/// Traces the forward of a TorchScript module: runs it on `inputs` and records the ops it calls as they are in the
/// file (aten.linear stays whole), with module paths and source lines. Control flow follows the data; where they
/// decided something, ModelFile::dataDependent says so. Parameters, buffers and other tensors of the module become
/// inputs of the computation with their qualified names; what forward leaves in a buffer by assignment becomes an
/// output that mutates it. The module's training flag is the file's, the ops run on the CPU, random ones draw from
/// `inputs.seed`. Throws Error: badInput for other files or what may not run, naming op and line; badUse where inputs
/// are missing, listing them; execution for a forward that fails; cancelled.
ModelFile traceTorchScript(const std::shared_ptr<const Archive>& archive, const TraceInputs& inputs,
                           const Progress& progress = {});

}  // namespace retrograd

#pragma once
// Only .cpp files of tracing include this: it shows LibTorch's types.
#include <ATen/core/ivalue.h>

#include "core/derivation/trace_inputs.h"
#include "core/torch/torchscript/script_module.h"
#include "core/torch/tracing/computation_recorder.h"

namespace retrograd {

/// The arguments of the module's forward, the module itself first: given, drawn in a given shape or in the one the file
/// was traced with, or the argument's default. Tensors among them are declared to the recorder as user inputs. Throws
/// Error(badUse) that lists each input that nothing was said of, with its type and how to give it.
torch::jit::Stack forwardArguments(const ScriptModule& module, const TraceInputs& inputs, ComputationRecorder& recorder,
                                   ModelFile& file);

/// Visits the tensors, numbers and texts in `value` with their flat names below `path` ("" for the value itself).
/// Throws Error(unsupportedOp) where values nest without end.
void forEachLeaf(const c10::IValue& value, const std::string& path,
                 const std::function<void(const c10::IValue&, const std::string&)>& visit, int depth = 0);

}  // namespace retrograd

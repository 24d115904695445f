#pragma once
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Reads a model of any kind that can be opened: a .pt2 or printed traces as readModelFile() does; a repro script of
/// torch.compile, or a folder that holds one (torch/fx/repro_model.h); that of a session file, with the inputs it was
/// saved with as sample inputs; a TorchScript archive, after a process of its own has tried LibTorch's compiler on it
/// (probe.h), by tracing it on the inputs, numbers and shapes of `request`, drawn from its seed. Where `request` has
/// none of these, they come from "model.inputs.safetensors" next to "model.pt", if there is one. The weights of
/// `request.data` take the place of the file's (formats/checkpoint/given_weights.h). Throws Error naming the file;
/// badUse where a TorchScript file needs inputs that nobody has given, listing them.
ModelFile readModel(const std::string& path, const DerivationRequest& request = {}, const Progress& progress = {});

/// The file next to a TorchScript file that inputs are looked for in.
std::string inputsBeside(const std::string& path);

}  // namespace retrograd

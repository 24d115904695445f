#pragma once
#include <memory>
#include <string>

#include "core/derivation/analysis.h"
#include "core/formats/zip/archive.h"

namespace retrograd {

/// A TorchScript archive as a model: traced on the inputs, numbers and shapes of `request`, drawn from its seed, after
/// a process of its own has tried LibTorch's compiler on it (probe.h). Where `request` has none of these, they come
/// from "model.inputs.safetensors" next to "model.pt", if there is one. Throws Error naming the file; badUse where it
/// needs inputs that nobody has given, listing them.
ModelFile readTracedFile(const std::shared_ptr<const Archive>& archive, const DerivationRequest& request,
                         const Progress& progress);

/// The file next to a TorchScript file that inputs are looked for in.
std::string inputsBeside(const std::string& path);

}  // namespace retrograd

#pragma once
#include <string>

#include "core/base/progress.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// Reads a repro script of torch.compile (formats/fx/fx_reader.h) as a model: runs its graph once on the arguments it
/// loads, on the CPU, and records the ops as a computation with these arguments as sample inputs. Nothing of the script
/// is executed as Python; its ops are found among those that a model file may name. Arguments without data are drawn
/// from `seed`, which a note says. Each op's source is its line in the script. Throws Error(badInput) naming script and
/// line; unknownOp or unsupportedOp for an op that cannot run here (Triton kernels, collectives).
ModelFile readReproModel(const std::string& path, std::uint64_t seed, const Progress& progress = {});

}  // namespace retrograd

#pragma once
#include <string>
#include <string_view>

#include "core/formats/checkpoint/checkpoint.h"

namespace retrograd {

/// Reads the folder of a distributed checkpoint (torch.distributed.checkpoint): `.metadata`, whose pickle is read and
/// never run, says of which slices of which files each tensor is made. A slice is an archive of torch.save, or a tensor
/// of a safetensors file. Throws as readCheckpoint().
Checkpoint readDistributed(const std::string& folder, const Progress& progress);

/// The same of the bytes of .metadata; the files of its slices lie in `folder`.
void readMetadata(std::string_view pickle, const std::string& folder, Checkpoint& checkpoint);

}  // namespace retrograd

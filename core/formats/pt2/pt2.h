#pragma once
#include <memory>
#include <string>

#include "core/formats/model/model_file.h"
#include "core/formats/zip/archive.h"

namespace retrograd {

/// Reads the computation, weights and sample inputs out of an archive that torch.export.save wrote and that was
/// verified. Throws Error(badInput) whose place names record and node; the caller puts the file before it. Layout of
/// the archive: torch/_export/serde/schema.py, torch/export/pt2_archive/constants.py (PyTorch 2.8 and later).
ModelFile readPt2(const std::shared_ptr<const Archive>& archive, const SymbolLookup& lookup, const Progress& progress);

/// The graph's record ("models/model.json"); empty when the archive holds none.
std::string findModelRecord(const Archive& archive);

}  // namespace retrograd

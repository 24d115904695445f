#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/formats/model/model_file.h"
#include "core/formats/zip/archive.h"

namespace retrograd {

/// Maps a file's archive and verifies it when `verify` says. Throws Error(badInput) for what is none, saying what it is
/// and how to make a right one.
std::shared_ptr<const Archive> openModelArchive(const std::string& path, const Progress& progress = {},
                                                Archive::Verify verify = Archive::Verify::first);

/// Reads what is in an archive of another kind than torch.export's; nullopt where it is not for it.
using ArchiveReader = std::function<std::optional<ModelFile>(const std::shared_ptr<const Archive>&)>;

/// Reads a `torch.export` archive (.pt2) or printed traces (formats/text/text_trace.h). Of an archive, verifies first
/// (large weights in the background, each before its use): CRCs, every record present and as long as its shape says,
/// sizes, argument kinds, nesting; nothing is allocated from numbers that were not checked. Throws Error(badInput)
/// naming the file and the trouble. An op that `lookup` does not know is a Problem (a warning) with its places; the
/// rest of the computation is still returned. For a file of another kind (state dict, TorchScript, ONNX, AOTInductor
/// package, older archive layouts, text) the error says what it is and how to make a right one, unless `otherwise`
/// reads it.
ModelFile readModelFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress = {},
                        const ArchiveReader& otherwise = {});

}  // namespace retrograd

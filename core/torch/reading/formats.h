#pragma once
#include <string>

#include "core/derivation/model_request.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// How a format is told, read, and what it can: a new one is a row of the table in formats.cpp.
struct FormatEntry {
  Format format;
  bool (*looksLike)(const std::string& path);  ///< by a look at it; throws Error where it cannot be read
  /// Its model, as readModel() returns it but for given weights.
  ModelFile (*read)(const std::string& path, const DerivationRequest& request, const Progress& progress);
  bool hasCompiles = false;  ///< --compile and --rank choose among its graphs
  bool isDerived = true;     ///< its backward is derived; else it holds the one that ran
};

/// The format of a file or folder: the first row that it looks like; Format::model where it looks like none. Throws
/// Error(io) for a file that cannot be read.
const FormatEntry& formatOf(const std::string& path);

/// Whether it is of this format, as formatOf().
bool isOf(Format format, const std::string& path);

}  // namespace retrograd

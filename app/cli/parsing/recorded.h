#pragma once
#include <optional>
#include <string>

#include "core/formats/folder/folder.h"

namespace retrograd::cli {

/// The graph at which a recorded folder is opened (formats/folder/folder.h), with notes on standard error of why it was
/// recorded and of what cannot be replayed; nothing where `path` is not such a folder. Throws as chooseGraph.
std::optional<FolderChoice> graphToOpen(const std::string& path);

}  // namespace retrograd::cli

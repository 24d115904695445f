#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/folder/folder.h"
#include "core/torch/opening/open_request.h"

namespace retrograd {

/// Receives a file that was read, before anything is derived from it.
using OnRead = std::function<void(const ModelFile&)>;

/// The whole way from what a person named to an Analysis: reads a file of any kind and derives it. A folder that was
/// captured opens at its graph, on what was recorded with it. A session file opens as it was saved; where anything is
/// asked for, its model is derived again with that and what else it was saved with. What there is to say of the file is
/// among the problems. `onRead` is not called for a session that opens as it was saved. Throws Error that names the
/// file, the op or what was asked for.
std::shared_ptr<const Analysis> openModel(const OpenRequest& request, const Progress& progress = {},
                                          const OnRead& onRead = {});

/// What is to be said of a captured folder that is opened: why it was kept, and what cannot be replayed.
std::vector<Problem> notesOf(const FolderChoice& choice, const std::string& path);

}  // namespace retrograd

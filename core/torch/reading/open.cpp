#include "core/torch/reading/open.h"

#include <filesystem>

#include "core/formats/kinds/file_kind.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/reading/session_file.h"

namespace retrograd {

std::shared_ptr<const Analysis> openModel(const std::string& path, const DerivationRequest& request,
                                          const Progress& progress) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) || !isSessionFile(path))
    return analyse(readModel(path, request, progress), request, progress);
  auto stored = loadSession(path, progress, request.rules);
  return asksForNothing(request) ? stored : deriveAnew(*stored, overlaid(*stored, request), progress);
}

}  // namespace retrograd

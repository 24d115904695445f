#include "core/formats/files/reading_limit.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/base/error.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

std::optional<std::vector<fs::path>>& readableFolders() {
  static std::optional<std::vector<fs::path>> folders;
  return folders;
}

bool liesIn(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

void limitReadingTo(const std::vector<std::string>& folders) {
  std::vector<fs::path> real;
  for (const auto& folder : folders) {
    std::error_code error;
    auto path = fs::canonical(folder, error);
    if (error || !fs::is_directory(path)) badUse("there is no such folder", folder);
    real.push_back(std::move(path));
  }
  readableFolders() = std::move(real);
}

void requireReadable(const std::string& path) {
  const auto& folders = readableFolders();
  if (!folders) return;
  std::error_code error;
  const auto real = fs::weakly_canonical(path, error);
  if (error || std::ranges::none_of(*folders, [&](const fs::path& folder) { return liesIn(real, folder); }))
    badUse("lies outside of the folders that may be read (--root)", path);
}

}  // namespace retrograd

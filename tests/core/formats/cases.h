#pragma once
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/source_path.h"

namespace retrograd::test {

/// Models kept with the tests.
inline std::filesystem::path data() { return std::filesystem::path(sourcePath("tests/data/models")); }
/// The large collection of cases next to a checkout; may be absent.
inline std::filesystem::path cases() { return std::filesystem::path(sourcePath("../shared/cases")); }

inline std::vector<std::string> filesBelow(const std::filesystem::path& folder, const std::string& ending) {
  std::vector<std::string> found;
  if (!std::filesystem::exists(folder)) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().string().ends_with(ending)) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

inline std::string contentOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder for the files of this run, gone when it ends.
struct TemporaryFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("retrograd-test-" + std::to_string(::getpid()));
  TemporaryFolder() { std::filesystem::create_directories(path); }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// A file of the test's own with this content.
inline std::string writeTemporary(const std::string& name, const std::string& content) {
  static const TemporaryFolder folder;
  const auto path = folder.path / name;
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return path.string();
}

}  // namespace retrograd::test

#include "core/base/installation.h"

#include <system_error>

namespace retrograd {
namespace {

namespace fs = std::filesystem;

/// The first that is there of `beside`, relative to the program's folder or the one above, and `installed`, relative to
/// the installation, in which programs lie in bin/, lib/retrograd/ and lib/retrograd/torch-VERSION/.
fs::path find(const fs::path& beside, const fs::path& installed) {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const auto folder = program.parent_path(), above = folder.parent_path(), third = above.parent_path();
  for (const auto& path :
       {folder / beside, above / installed, third / installed, above / beside, third.parent_path() / installed})
    if (fs::exists(path, error)) return path;
  return {};
}

}  // namespace

fs::path privateFile(const char* name) { return find(name, fs::path("lib/retrograd") / name); }

fs::path sharedFile(const char* name) { return find(fs::path("share") / name, fs::path("share/retrograd") / name); }

}  // namespace retrograd

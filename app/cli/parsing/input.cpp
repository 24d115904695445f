#include "app/cli/parsing/input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "core/torch/reading/formats.h"

namespace retrograd::cli {
namespace {

[[noreturn]] void fail(ErrorCode code, const std::string& message) { throw Error(code, message, "standard input"); }

void writeAll(int fd, const char* bytes, std::size_t count) {
  while (count > 0) {
    const auto written = ::write(fd, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(ErrorCode::io, std::string("cannot be kept in memory: ") + std::strerror(errno));
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
}

std::string readStandardInput() {
  if (isatty(STDIN_FILENO))
    fail(ErrorCode::badUse, "is a terminal; - reads a file from a pipe, such as `cat model.pt2 | retrograd trace -`");
  const int fd = ::memfd_create("standard input", MFD_CLOEXEC);
  if (fd < 0) fail(ErrorCode::io, std::string("cannot be kept in memory: ") + std::strerror(errno));
  std::array<char, 1 << 16> part;
  bool isEmpty = true;
  for (;;) {
    const auto count = ::read(STDIN_FILENO, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorCode::io, std::string("cannot be read: ") + std::strerror(errno));
    if (count == 0) break;
    isEmpty = false;
    writeAll(fd, part.data(), static_cast<std::size_t>(count));
  }
  if (isEmpty)
    fail(ErrorCode::badUse, "is empty; - reads a file from a pipe, such as `cat model.pt2 | retrograd trace -`");
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

std::string inputFile(const std::string& path) {
  if (path != "-") return path;
  static const auto kept = readStandardInput();  // a second - means the same bytes
  return kept;
}

std::string jobsBelow(const std::string& path) {
  constexpr std::size_t shown = 4, most = 5000;
  constexpr int deepest = 6;
  std::vector<std::string> found, scripts;  // logs come first: a folder of them holds the whole job
  std::error_code ignored;
  std::filesystem::recursive_directory_iterator entry(path, std::filesystem::directory_options::skip_permission_denied,
                                                      ignored),
      end;
  for (std::size_t seen = 0; !ignored && entry != end && seen < most; ++seen, entry.increment(ignored)) {
    if (entry.depth() >= deepest) entry.disable_recursion_pending();
    std::error_code error;
    if (!entry->is_directory(error) || error) continue;
    const auto folder = entry->path().string();
    const auto format = formatOf(folder).format;
    if (format != Format::job && format != Format::repro) continue;
    (format == Format::job ? found : scripts).push_back(folder);
    entry.disable_recursion_pending();
  }
  std::sort(found.begin(), found.end());
  std::sort(scripts.begin(), scripts.end());
  found.insert(found.end(), scripts.begin(), scripts.end());
  if (found.empty()) return {};
  auto text = fmt::format("; folders below it that can be opened: {}",
                          fmt::join(found.begin(), found.begin() + std::min(shown, found.size()), ", "));
  return found.size() > shown ? text + fmt::format(" and {} more", found.size() - shown) : text;
}

}  // namespace retrograd::cli

#include "app/cli/parsing/input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"

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

}  // namespace retrograd::cli

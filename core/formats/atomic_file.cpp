#include "core/formats/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/error.h"

namespace retrograd {
namespace {

/// Permissions the file would have got from open(): mkstemp gives it to its owner alone.
mode_t usualMode(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return info.st_mode & 07777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) {
    temporary_.clear();
    fail("cannot write");
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const { throw Error(ErrorCode::io, std::string(what) + ": " + std::strerror(errno), path_); }

void AtomicFile::write(std::string_view bytes) {
  constexpr std::size_t most = std::size_t{1} << 30;  // Linux writes no more than 2 GiB at once
  while (!bytes.empty()) {
    const auto n = ::write(fd_, bytes.data(), std::min(bytes.size(), most));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit() {
  ::fchmod(fd_, usualMode(path_));
  if (::fsync(fd_) != 0) fail("cannot write");
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) fail("cannot write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot replace");
  temporary_.clear();
}

void makeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(ErrorCode::io, "the folder cannot be made: " + error.message(), path);
}

}  // namespace retrograd

#include "core/formats/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "core/base/error.h"
#include "core/formats/files/mapping_watch.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

/// The permissions of what has the name now.
std::optional<mode_t> presentMode(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return info.st_mode & 07777;
  return std::nullopt;
}

std::string randomSuffix() {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  static thread_local std::random_device device;
  std::string suffix = ".";
  for (int i = 0; i < 8; ++i) suffix += letters[device() % letters.size()];
  return suffix;
}

/// A rename is on the disk once its folder is. Where a file system cannot do that, the rename counts all the same.
void flushFolderOf(const std::string& path) {
  auto folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

AtomicFile::AtomicFile(std::string path, Over over) : path_(std::move(path)), over_(over) {
  requireReplaceable();
  openTemporary();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const {
  throw Error(ErrorCode::io, std::string(what) + ": " + std::strerror(errno), path_);
}

void AtomicFile::requireReplaceable() const {
  const auto refuse = [&](const std::string& why) { badUse(why, path_); };
  if (path_.empty()) refuse("a file to write needs a name");
  if (isStandardOutput(path_))
    refuse("this is written to a file, not to standard output; name a file (./- for one called -)");
  struct stat info{};
  if (::lstat(path_.c_str(), &info) != 0) return;  // new, or open() will give the reason
  if (S_ISLNK(info.st_mode)) {
    std::error_code ignored;
    refuse("is a symbolic link to " + fs::read_symlink(path_, ignored).string() +
           ": name the file itself to replace it");
  }
  if (S_ISDIR(info.st_mode)) refuse("is a folder, not a file to write");
  if (!S_ISREG(info.st_mode)) refuse("is a device, pipe or socket, not a file to write");
  if (over_ == Over::otherFiles && isMapped(info.st_dev, info.st_ino))
    refuse("is an input that is open now and would be lost: name another file to write");
}

/// By open(), not mkstemp(): so the kernel applies the umask, which can be read only by changing it for the whole
/// process.
void AtomicFile::openTemporary() {
  const mode_t mode = presentMode(path_).value_or(0666) & 0777;
  constexpr int tries = 100;
  for (int i = 0; i < tries; ++i) {
    temporary_ = path_ + randomSuffix();
    fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd_ >= 0) return;
    if (errno != EEXIST && errno != EINTR) break;
  }
  temporary_.clear();  // nothing of ours to remove
  fail("cannot write");
}

void AtomicFile::write(std::string_view bytes) {
  constexpr std::size_t most = std::size_t{1} << 30;  // Linux writes no more than 2 GiB at once
  while (!bytes.empty()) {
    const auto n = ::write(fd_, bytes.data(), std::min(bytes.size(), most));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EFAULT) requireUnchanged(bytes.data());  // a page of a mapped file that is gone
    if (n < 0) fail("cannot write");
    bytes.remove_prefix(n);
  }
}

void AtomicFile::commit() {
  requireReplaceable();  // what has the name may be another file by now
  if (const auto mode = presentMode(path_); mode && ::fchmod(fd_, *mode) != 0)
    fail("cannot give it the permissions of the file that it replaces");
  if (::fsync(fd_) != 0) fail("cannot write");
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) fail("cannot write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot replace");
  temporary_.clear();
  flushFolderOf(path_);
}

void writeWholeFile(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

bool isStandardOutput(std::string_view path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

void makeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(ErrorCode::io, "the folder cannot be made: " + error.message(), path);
}

}  // namespace retrograd

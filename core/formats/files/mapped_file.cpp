#include "core/formats/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/files/reading_limit.h"

namespace retrograd {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

struct Mapping {
  void* address;
  std::size_t size;
  std::optional<MappingWatch> watch;
  Mapping(void* a, std::size_t n, int fd, const std::string& path) : address(a), size(n) {
    watch.emplace(a, n, fd, path);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    watch.reset();
    ::munmap(address, size);
  }
};

[[noreturn]] void failSystem(const std::string& path, const char* what) {
  badInput(std::string(what) + ": " + std::strerror(errno), path);
}

}  // namespace

ByteRegion mapFile(const std::string& path) {
  requireReadable(path);
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) failSystem(path, "cannot open");
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) failSystem(path, "cannot read");
  if (S_ISDIR(info.st_mode)) badInput("is a folder, not a file", path);
  if (!S_ISREG(info.st_mode)) badInput("is not a regular file", path);
  if (info.st_size == 0) badInput("the file is empty", path);
  const std::size_t size = info.st_size;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) failSystem(path, "cannot map into memory");
  return {static_cast<const std::byte*>(address), size,
          std::make_shared<Mapping>(address, size, std::exchange(file.fd, -1), path), true};
}

void releasePages(const ByteRegion& file, std::size_t offset, std::size_t size) {
  if (!file.mapped) return;  // MADV_DONTNEED would zero memory that no file is behind
  const std::size_t page = ::sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<std::uintptr_t>(file.data) + offset;
  const auto first = (begin + page - 1) / page * page;
  const auto last = (begin + size) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace retrograd

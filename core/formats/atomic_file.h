#pragma once
#include <span>
#include <string>
#include <string_view>

namespace retrograd {

/// A file that appears under its name whole or not at all: it is written beside it and renamed by commit(). Every write is checked,
/// so a full disk loses nothing that was there. All throw Error(io) naming the file.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();  ///< removes what was not committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes) { write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())); }
  /// Flushes to the disk and takes the place of what had the name before.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_, temporary_;
  int fd_ = -1;
};

/// Makes a folder with all those around it; one that is there is left as it is. Throws Error(io) naming it.
void makeFolder(const std::string& path);

}  // namespace retrograd

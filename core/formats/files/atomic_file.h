#pragma once
#include <span>
#include <string>
#include <string_view>

namespace retrograd {

/// A file that appears under its name whole or not at all: written to a temporary file in the same folder, flushed to
/// the disk, then renamed by commit(). Every file that the program writes goes through here. A new file has the
/// permissions that the umask leaves, one that is replaced keeps its own.
///
/// Refuses, with Error(badUse) naming the file: a folder, a device or pipe, a symbolic link (the message says where it
/// leads), standard output
/// (`-` and /dev/stdout), and a file that is mapped as input now, under whatever name. All other failures, a full disk
/// among them, are Error(io).
class AtomicFile {
 public:
  enum class Over {
    otherFiles,
    ownInput
  };  ///< ownInput: the file may be one that is open, as when a session is saved in its own place

  explicit AtomicFile(std::string path, Over over = Over::otherFiles);
  ~AtomicFile();  ///< removes what was not committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes) {
    write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  /// Flushes to the disk and takes the place of what had the name before.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  void requireReplaceable() const;
  void openTemporary();

  std::string path_, temporary_;
  Over over_;
  int fd_ = -1;
};

/// Writes a file whole, as AtomicFile does.
void writeWholeFile(const std::string& path, std::string_view content);

/// `-` or /dev/stdout: standard output, for commands that write text to it on request.
bool isStandardOutput(std::string_view path);

/// Makes a folder with all those around it; one that is there is left as it is. Throws Error(io) naming it.
void makeFolder(const std::string& path);

}  // namespace retrograd

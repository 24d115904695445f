#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <vector>

namespace retrograd {

/// Watches files while they are mapped into memory. Weights are used where they lie in the mapped file, so the file may
/// change or vanish under them. Two things then keep wrong numbers out:
/// - Reading a page that is gone raises SIGBUS. The handler puts zero pages over the rest of the mapping, marks it as
/// broken and lets the
///   reader go on; whoever read asks afterwards and throws the result away.
/// - Size and time of last writing are compared with those at mapping, which notices a file that was written in place.
/// A file that another one replaced by renaming does no harm: the mapping keeps the old one.
class MappingWatch {
 public:
  /// Takes over `fd`, the file's descriptor, which is open as long as the watch lives.
  MappingWatch(const void* address, std::size_t size, int fd, std::string path);
  ~MappingWatch();
  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;

 private:
  friend struct WatchTable;
  struct Slot;
  Slot* slot_;
};

/// True while the file with this device and inode is mapped.
bool isMapped(dev_t device, ino_t inode);

/// Throws Error(badInput) naming the file if `data` lies in a mapped file that is no longer what it was. Does nothing
/// for other memory.
void requireUnchanged(const void* data);
/// What `read` gives for a mapped file that begins at `data`, unless the file changed meanwhile: then that is the
/// error, whatever else went wrong.
template <class Read>
auto readUnchanged(const void* data, Read&& read) {
  try {
    auto result = read();
    requireUnchanged(data);
    return result;
  } catch (...) {
    requireUnchanged(data);
    throw;
  }
}
/// As requireUnchanged() for every file that is mapped or was: for a program that does one thing and ends.
void requireAllUnchanged();

/// The mapped files behind some tensors, to be asked about before and after a run.
class FilesInUse {
 public:
  /// Remembers the file that `data` lies in; does nothing for other memory.
  void add(const void* data);
  /// Throws Error(badInput) for a file that lost pages while they were read. Costs one comparison as long as no file
  /// did.
  void requireWhole() const;
  /// Also asks the system whether the files were written. Throws Error(badInput).
  void requireUnchanged() const;

 private:
  std::vector<const void*> places_;  ///< the first byte of each mapping
};

}  // namespace retrograd

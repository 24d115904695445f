#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/formats/files/atomic_file.h"

namespace retrograd {

/// Writes a zip archive front to back into a file that appears whole or not at all. libzip, which reads archives here,
/// keeps all of them until it closes, cannot align a member and has its own way of replacing a file; this writes as it
/// goes. Zip64 where sizes or offsets ask for it (APPNOTE.TXT 6.3.10). The same members give the same bytes: no times
/// are recorded. All throw Error(io).
class ZipWriter {
 public:
  static constexpr std::size_t alignment = 64;  ///< of stored members in the file, as of weights in .pt2 archives

  explicit ZipWriter(const std::string& path, AtomicFile::Over over = AtomicFile::Over::otherFiles)
      : file_(path, over) {}

  void addDeflated(std::string_view name, std::string_view content);
  /// Neither compressed nor copied: a reader can map it. Throws Error(badInput) where `content` lies in an archive that
  /// is damaged there.
  void addStored(std::string_view name, std::span<const std::byte> content, std::size_t alignTo = alignment);
  /// Writes the directory and takes the place of what had the name before.
  void commit();

 private:
  struct Member {
    std::string_view name;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t size = 0, compressedSize = 0, offset = 0;
  };
  void add(const Member& member, std::size_t alignTo, std::span<const std::byte> bytes);
  void write(std::string_view bytes);

  AtomicFile file_;
  std::uint64_t at_ = 0;
  std::string directory_;
  std::uint64_t members_ = 0;
};

}  // namespace retrograd

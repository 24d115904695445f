#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/formats/files/mapped_file.h"

namespace retrograd {

/// A member of a zip archive as its central directory describes it, with the place of its bytes.
struct ZipEntry {
  std::string name;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t size = 0;            ///< of the content
  std::uint64_t compressedSize = 0;  ///< of the bytes in the archive
  std::uint64_t dataOffset = 0;      ///< of the first of them, from the archive's start
};

/// True when the bytes begin as a zip archive does.
bool looksLikeZip(std::span<const std::byte> archive);

/// Reads the central directory and each local header, Zip64 included (APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3).
/// Verified: all offsets inside the archive, no two members overlapping, no name twice, local and central names equal,
/// methods stored or deflated, nothing encrypted or split over disks. Throws Error(badInput) naming the member.
std::vector<ZipEntry> readZipDirectory(std::span<const std::byte> archive);

}  // namespace retrograd

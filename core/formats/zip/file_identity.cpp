#include "core/formats/zip/file_identity.h"

#include <zlib.h>

#include "core/formats/zip/zip_directory.h"

namespace retrograd {
namespace {

uLong crcOf(uLong crc, const void* data, std::size_t size) {
  return crc32_z(crc, static_cast<const Bytef*>(data), size);
}

}  // namespace

FileIdentity identityOf(const ByteRegion& file) {
  FileIdentity identity{file.size, 0};
  if (!looksLikeZip(file.span())) {
    identity.checksum = static_cast<std::uint32_t>(crcOf(0, file.data, file.size));
    return identity;
  }
  uLong crc = 0;
  for (const auto& entry : readZipDirectory(file.span())) {
    crc = crcOf(crc, entry.name.data(), entry.name.size() + 1);  // with the zero behind it, which ends the name
    const std::uint64_t numbers[] = {entry.method, entry.crc, entry.size};
    crc = crcOf(crc, numbers, sizeof numbers);
  }
  identity.checksum = static_cast<std::uint32_t>(crc);
  return identity;
}

}  // namespace retrograd

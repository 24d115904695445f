#pragma once
#include <cstdint>

#include "core/formats/files/mapped_file.h"

namespace retrograd {

/// What distinguishes a file from one that was changed: its size and a checksum of all its content.
struct FileIdentity {
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// Of a zip archive the checksum is over its directory, which holds the CRC of each member: gigabytes of weights are
/// not read for it (Archive::open compares them with these CRCs). Of any other file it is the CRC-32 of the content.
FileIdentity identityOf(const ByteRegion& file);

}  // namespace retrograd

#include "core/formats/zip/zip_directory.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "core/base/error.h"

namespace retrograd {
namespace {

constexpr std::uint32_t localSignature = 0x04034b50, centralSignature = 0x02014b50, endSignature = 0x06054b50;
constexpr std::uint32_t end64Signature = 0x06064b50, locatorSignature = 0x07064b50;
constexpr std::size_t localSize = 30, centralSize = 46, endSize = 22, end64Size = 56, locatorSize = 20;
constexpr std::uint16_t encryptedFlags = 0x2041;  // traditional, strong, masked headers
constexpr std::uint32_t in64 = 0xffffffff;        // the true number is in the Zip64 part

/// Little-endian numbers at checked offsets.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const { return bytes_.size(); }
  void need(std::uint64_t offset, std::uint64_t count, const char* what) const {
    if (offset > size() || count > size() - offset)
      badInput(std::string("the zip archive is cut off or damaged: ") + what + " lies outside of it");
  }
  template <class Number>
  Number at(std::uint64_t offset) const {
    Number n = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      n |= static_cast<Number>(static_cast<Number>(bytes_[offset + i]) << (8 * i));
    return n;
  }
  std::uint16_t u16(std::uint64_t o) const { return at<std::uint16_t>(o); }
  std::uint32_t u32(std::uint64_t o) const { return at<std::uint32_t>(o); }
  std::uint64_t u64(std::uint64_t o) const { return at<std::uint64_t>(o); }
  std::string_view text(std::uint64_t offset, std::size_t count) const {
    return {reinterpret_cast<const char*>(bytes_.data() + offset), count};
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Directory {
  std::uint64_t offset = 0, size = 0, entries = 0;
  std::uint64_t end = 0;  ///< where the directory must have ended
};

std::optional<std::uint64_t> findEnd(const Bytes& zip) {
  if (zip.size() < endSize) return std::nullopt;
  const std::uint64_t furthest = std::min<std::uint64_t>(zip.size(), endSize + 0xffff);
  for (std::uint64_t back = endSize; back <= furthest; ++back) {
    const std::uint64_t at = zip.size() - back;
    if (zip.u32(at) == endSignature && zip.u16(at + 20) == back - endSize) return at;
  }
  return std::nullopt;
}

Directory readEnd64(const Bytes& zip, std::uint64_t locator) {
  const auto end = zip.u64(locator + 8);
  zip.need(end, end64Size, "the Zip64 end record");
  if (zip.u32(end) != end64Signature)
    badInput("the zip archive is damaged: no Zip64 end record where the locator says");
  if (zip.u32(end + 16) != 0 || zip.u32(end + 20) != 0) badInput("the zip archive is split over several files");
  return {zip.u64(end + 48), zip.u64(end + 40), zip.u64(end + 32), end};
}

Directory findDirectory(const Bytes& zip) {
  const auto end = findEnd(zip);
  if (!end) badInput("the zip archive is cut off or damaged: it has no end record; copy it or save it again");
  if (zip.u16(*end + 4) != 0 || zip.u16(*end + 6) != 0) {
    if (zip.u16(*end + 4) != 0xffff) badInput("the zip archive is split over several files");
  }
  const bool has64 = *end >= locatorSize && zip.u32(*end - locatorSize) == locatorSignature;
  Directory directory = has64 ? readEnd64(zip, *end - locatorSize)
                              : Directory{zip.u32(*end + 16), zip.u32(*end + 12), zip.u16(*end + 10), *end};
  zip.need(directory.offset, directory.size, "the central directory");
  if (directory.offset + directory.size > directory.end)
    badInput("the zip archive is damaged: its central directory overlaps its end record");
  if (directory.entries > directory.size / centralSize)
    badInput("the zip archive is damaged: more members than its directory has room for");
  return directory;
}

/// Takes the numbers that did not fit in 32 bits from the Zip64 extra field, in the order the standard fixes.
void applyZip64(const Bytes& zip, std::uint64_t extra, std::uint16_t length, ZipEntry& entry, std::uint64_t& header) {
  const std::uint64_t end = extra + length;
  while (extra + 4 <= end) {
    const auto id = zip.u16(extra), size = zip.u16(extra + 2);
    extra += 4;
    if (size > end - extra) return;
    if (id == 1) {
      std::uint64_t at = extra;
      for (std::uint64_t* number : {&entry.size, &entry.compressedSize, &header}) {
        if (*number != in64) continue;
        if (at + 8 > extra + size) badInput("the Zip64 field is too short", entry.name);
        *number = zip.u64(at);
        at += 8;
      }
      return;
    }
    extra += size;
  }
}

void locateData(const Bytes& zip, std::uint64_t header, std::uint64_t directory, ZipEntry& entry) {
  if (header > directory || directory - header < localSize)
    badInput("the zip archive is damaged: header outside of it", entry.name);
  if (zip.u32(header) != localSignature) badInput("the zip archive is damaged: no local header", entry.name);
  const std::uint64_t nameLength = zip.u16(header + 26), extraLength = zip.u16(header + 28);
  entry.dataOffset = header + localSize + nameLength + extraLength;
  if (entry.dataOffset > directory || entry.compressedSize > directory - entry.dataOffset)
    badInput("the zip archive is cut off or damaged: content outside of it", entry.name);
  if (zip.text(header + localSize, nameLength) != entry.name)
    badInput("the zip archive is damaged: two names for one member", entry.name);
}

void checkNoOverlap(std::vector<std::pair<std::uint64_t, const ZipEntry*>> byHeader) {
  std::sort(byHeader.begin(), byHeader.end());
  for (std::size_t i = 1; i < byHeader.size(); ++i) {
    const auto& before = *byHeader[i - 1].second;
    if (before.dataOffset + before.compressedSize > byHeader[i].first)
      badInput("the zip archive is damaged: members overlap", before.name);
  }
}

ZipEntry readEntry(const Bytes& zip, std::uint64_t at, std::uint64_t& header) {
  ZipEntry entry;
  const auto nameLength = zip.u16(at + 28), extraLength = zip.u16(at + 30);
  entry.name = zip.text(at + centralSize, nameLength);
  entry.method = zip.u16(at + 10);
  entry.crc = zip.u32(at + 16);
  entry.compressedSize = zip.u32(at + 20);
  entry.size = zip.u32(at + 24);
  header = zip.u32(at + 42);
  applyZip64(zip, at + centralSize + nameLength, extraLength, entry, header);
  if (entry.name.empty() || entry.name.find('\0') != std::string::npos)
    badInput("the zip archive is damaged: a member without a proper name");
  if (zip.u16(at + 8) & encryptedFlags) badInput("the member is encrypted", entry.name);
  if (entry.method != 0 && entry.method != 8)
    badInput("compressed by method " + std::to_string(entry.method) + "; only deflate is read", entry.name);
  if (entry.method == 0 && entry.size != entry.compressedSize)
    badInput("the zip archive is damaged: a stored member with two sizes", entry.name);
  return entry;
}

}  // namespace

bool looksLikeZip(std::span<const std::byte> archive) {
  return archive.size() >= 4 && (Bytes(archive).u32(0) == localSignature || Bytes(archive).u32(0) == endSignature);
}

std::vector<ZipEntry> readZipDirectory(std::span<const std::byte> archive) {
  const Bytes zip(archive);
  const Directory directory = findDirectory(zip);
  std::vector<ZipEntry> entries;
  std::vector<std::uint64_t> headers;
  entries.reserve(directory.entries);
  std::uint64_t at = directory.offset;
  const std::uint64_t end = directory.offset + directory.size;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (end - at < centralSize || zip.u32(at) != centralSignature)
      badInput("the zip archive is damaged: its central directory is cut off");
    const std::uint64_t length = centralSize + zip.u16(at + 28) + zip.u16(at + 30) + zip.u16(at + 32);
    if (length > end - at) badInput("the zip archive is damaged: its central directory is cut off");
    std::uint64_t header = 0;
    entries.push_back(readEntry(zip, at, header));
    locateData(zip, header, directory.offset, entries.back());
    headers.push_back(header);
    at += length;
  }
  std::vector<std::pair<std::uint64_t, const ZipEntry*>> byHeader;
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    byHeader.emplace_back(headers[i], &entries[i]);
    if (!names.insert(entries[i].name).second) badInput("the zip archive holds this name twice", entries[i].name);
  }
  checkNoOverlap(std::move(byHeader));
  return entries;
}

}  // namespace retrograd

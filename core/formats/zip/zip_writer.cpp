#include "core/formats/zip/zip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/formats/files/deferred_check.h"

namespace retrograd {
namespace {

constexpr std::uint32_t in64 = 0xffffffff;  // the true number is in the Zip64 part
constexpr std::uint16_t version20 = 20, version45 = 45;
constexpr std::uint16_t zip64Field = 0x0001, alignmentField = 0xd935;  // the latter as Android's zipalign writes it
constexpr std::uint16_t utf8Names = 0x0800;
constexpr std::uint32_t firstOf1980 = 0x00210000;  // the format's zero: time, then date

void put(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

std::uint32_t fit(std::uint64_t number) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, in64)); }

std::uint32_t crcOf(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::span<const std::byte> bytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Raw deflate, piece by piece: zlib counts what is left in 32 bits.
std::string deflated(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out, buffer(std::size_t{1} << 16, '\0');
  int state = Z_OK;
  do {
    const auto piece = std::min<std::size_t>(content.size(), std::size_t{1} << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = static_cast<uInt>(piece);
    content.remove_prefix(piece);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer, 0, buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (state != Z_STREAM_END);
  deflateEnd(&stream);
  return out;
}

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  at_ += bytes.size();
}

void ZipWriter::addDeflated(std::string_view name, std::string_view content) {
  const auto packed = deflated(content);
  add({name, 8, crcOf(bytesOf(content)), content.size(), packed.size(), at_}, 1, bytesOf(packed));
}

void ZipWriter::addStored(std::string_view name, std::span<const std::byte> content, std::size_t alignTo) {
  requireVerified(content.data());  // damage of a large archive must not be copied with a checksum that agrees
  add({name, 0, crcOf(content), content.size(), content.size(), at_}, alignTo, content);
}

void ZipWriter::add(const Member& member, std::size_t alignTo, std::span<const std::byte> bytes) {
  const auto& [name, method, crc, size, compressedSize, offset] = member;
  if (name.size() > std::numeric_limits<std::uint16_t>::max())
    throw Error(ErrorCode::internal, "a member's name is too long", std::string(name));
  constexpr std::size_t localSize = 30;
  const bool large = size >= in64 || compressedSize >= in64;
  std::string extra;
  if (large) put(extra, zip64Field, 2), put(extra, 16, 2), put(extra, size, 8), put(extra, compressedSize, 8);
  if (alignTo > 1) {  // the field's own six bytes are there always: padding may then be anything from 0
    const auto end = offset + localSize + name.size() + extra.size() + 6;
    const auto padding = (alignTo - end % alignTo) % alignTo;
    put(extra, alignmentField, 2), put(extra, 2 + padding, 2), put(extra, alignTo, 2);
    extra.append(padding, '\0');
  }
  std::string header;
  put(header, 0x04034b50, 4), put(header, large ? version45 : version20, 2), put(header, utf8Names, 2),
      put(header, method, 2);
  put(header, firstOf1980, 4), put(header, crc, 4), put(header, large ? in64 : compressedSize, 4),
      put(header, large ? in64 : size, 4);
  put(header, name.size(), 2), put(header, extra.size(), 2);
  header.append(name).append(extra);
  write(header);
  write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});

  std::string wide;  // in the order the standard fixes: size, compressed size, offset
  for (const auto number : {size, compressedSize, offset})
    if (number >= in64) put(wide, number, 8);
  auto& entry = directory_;
  put(entry, 0x02014b50, 4), put(entry, version45, 2), put(entry, wide.empty() ? version20 : version45, 2),
      put(entry, utf8Names, 2);
  put(entry, method, 2), put(entry, firstOf1980, 4), put(entry, crc, 4), put(entry, fit(compressedSize), 4),
      put(entry, fit(size), 4);
  put(entry, name.size(), 2), put(entry, wide.empty() ? 0 : wide.size() + 4, 2);
  put(entry, 0, 2), put(entry, 0, 2), put(entry, 0, 2), put(entry, 0, 4);  // no comment, disk 0, no attributes
  put(entry, fit(offset), 4);
  entry.append(name);
  if (!wide.empty()) {
    put(entry, zip64Field, 2), put(entry, wide.size(), 2);
    entry.append(wide);
  }
  ++members_;
}

void ZipWriter::commit() {
  const auto begin = at_, size = static_cast<std::uint64_t>(directory_.size());
  write(directory_);
  std::string end;
  if (members_ >= 0xffff || begin >= in64 || size >= in64) {
    const auto end64 = at_;
    put(end, 0x06064b50, 4), put(end, 44, 8), put(end, version45, 2), put(end, version45, 2), put(end, 0, 8);
    put(end, members_, 8), put(end, members_, 8), put(end, size, 8), put(end, begin, 8);
    put(end, 0x07064b50, 4), put(end, 0, 4), put(end, end64, 8), put(end, 1, 4);
  }
  const auto members16 = std::min<std::uint64_t>(members_, 0xffff);
  put(end, 0x06054b50, 4), put(end, 0, 4), put(end, members16, 2), put(end, members16, 2), put(end, fit(size), 4),
      put(end, fit(begin), 4);
  put(end, 0, 2);
  write(end);
  file_.commit();
}

}  // namespace retrograd

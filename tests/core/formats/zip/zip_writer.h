#pragma once
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

namespace retrograd::test {

using ZipContent = std::vector<std::pair<std::string, std::string>>;

struct ZipOptions {
  bool deflate = false;
  bool zip64 = false;  ///< sizes and offsets in the Zip64 fields, with a Zip64 end record
};

inline void put(std::string& out, std::uint64_t n, int width) {
  for (int i = 0; i < width; ++i) out += i < 8 ? static_cast<char>(n >> (8 * i) & 0xff) : '\0';
}

inline std::string deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A zip archive with right checksums, so that a test can get a wrong content past them.
inline std::string makeZip(const ZipContent& content, ZipOptions options = {}) {
  std::string out, directory;
  const auto in32 = [&](std::uint64_t n) { return options.zip64 ? 0xffffffffULL : n; };
  for (const auto& [name, text] : content) {
    const auto offset = out.size();
    const std::string stored = options.deflate ? deflated(text) : text;
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
    const int method = options.deflate ? 8 : 0;
    put(out, 0x04034b50, 4), put(out, 20, 2), put(out, 0, 2), put(out, static_cast<std::uint64_t>(method), 2),
        put(out, 0, 4), put(out, crc, 4);
    put(out, stored.size(), 4), put(out, text.size(), 4), put(out, name.size(), 2), put(out, 0, 2);
    out += name + stored;
    put(directory, 0x02014b50, 4), put(directory, 20, 2), put(directory, 20, 2), put(directory, 0, 2);
    put(directory, static_cast<std::uint64_t>(method), 2), put(directory, 0, 4), put(directory, crc, 4);
    put(directory, in32(stored.size()), 4), put(directory, in32(text.size()), 4), put(directory, name.size(), 2);
    put(directory, options.zip64 ? 28 : 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2),
        put(directory, 0, 4);
    put(directory, in32(offset), 4);
    directory += name;
    if (options.zip64)
      put(directory, 1, 2), put(directory, 24, 2), put(directory, text.size(), 8), put(directory, stored.size(), 8),
          put(directory, offset, 8);
  }
  const auto begin = out.size();
  out += directory;
  if (options.zip64) {
    const auto end = out.size();
    put(out, 0x06064b50, 4), put(out, 44, 8), put(out, 45, 2), put(out, 45, 2), put(out, 0, 8),
        put(out, content.size(), 8);
    put(out, content.size(), 8), put(out, directory.size(), 8), put(out, begin, 8);
    put(out, 0x07064b50, 4), put(out, 0, 4), put(out, end, 8), put(out, 1, 4);
  }
  put(out, 0x06054b50, 4), put(out, 0, 4), put(out, options.zip64 ? 0xffff : content.size(), 2);
  put(out, options.zip64 ? 0xffff : content.size(), 2), put(out, in32(directory.size()), 4), put(out, in32(begin), 4),
      put(out, 0, 2);
  return out;
}

}  // namespace retrograd::test

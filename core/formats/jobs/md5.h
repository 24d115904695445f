#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace retrograd::jobs {

/// MD5 (RFC 1321), by which a log says what a payload has to be. No protection against anybody: it finds what was cut
/// off or mixed up.
class Md5 {
 public:
  void add(std::string_view bytes);
  /// 32 hexadecimal digits; nothing may be added afterwards.
  std::string digest();

 private:
  void block(const unsigned char* bytes);

  std::array<std::uint32_t, 4> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<unsigned char, 64> rest_{};
  std::uint64_t length_ = 0;
};

}  // namespace retrograd::jobs

#include "core/formats/jobs/md5.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace retrograd::jobs {
namespace {

/// floor(2^32 * |sin(i + 1)|)
const std::array<std::uint32_t, 64>& sines() {
  static const auto table = [] {
    std::array<std::uint32_t, 64> made{};
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::uint32_t>(std::floor(4294967296.0 * std::fabs(std::sin(static_cast<double>(i + 1)))));
    return made;
  }();
  return table;
}

constexpr std::array<int, 16> shifts{7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

}  // namespace

void Md5::block(const unsigned char* bytes) {
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 16; ++i) {
    words[i] = bytes[4 * i] | std::uint32_t{bytes[4 * i + 1]} << 8 | std::uint32_t{bytes[4 * i + 2]} << 16 |
               std::uint32_t{bytes[4 * i + 3]} << 24;
  }
  static const auto& sine = sines();
  auto [a, b, c, d] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t mixed = 0;
    std::size_t word = 0;
    if (i < 16) {
      mixed = (b & c) | (~b & d), word = i;
    } else if (i < 32) {
      mixed = (d & b) | (~d & c), word = (5 * i + 1) % 16;
    } else if (i < 48) {
      mixed = b ^ c ^ d, word = (3 * i + 5) % 16;
    } else {
      mixed = c ^ (b | ~d), word = 7 * i % 16;
    }
    const auto turned = std::rotl(a + mixed + sine[i] + words[word], shifts[i / 16 * 4 + i % 4]);
    a = d, d = c, c = b, b += turned;
  }
  state_[0] += a, state_[1] += b, state_[2] += c, state_[3] += d;
}

void Md5::add(std::string_view bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  auto left = bytes.size();
  auto filled = static_cast<std::size_t>(length_ % 64);
  length_ += left;
  if (filled > 0) {
    const auto taken = std::min(left, 64 - filled);
    std::memcpy(rest_.data() + filled, at, taken);
    at += taken, left -= taken, filled += taken;
    if (filled < 64) return;
    block(rest_.data());
  }
  for (; left >= 64; at += 64, left -= 64) block(at);
  if (left > 0) std::memcpy(rest_.data(), at, left);
}

std::string Md5::digest() {
  const auto bits = length_ * 8;
  add("\x80");
  while (length_ % 64 != 56) add(std::string_view("\0", 1));
  std::array<char, 8> size{};
  for (std::size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(bits >> (8 * i));
  add({size.data(), size.size()});
  std::string text;
  for (const auto word : state_) {
    for (int i = 0; i < 4; ++i) text += fmt::format("{:02x}", word >> (8 * i) & 0xff);
  }
  return text;
}

}  // namespace retrograd::jobs

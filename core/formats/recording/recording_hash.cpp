#include "core/formats/recording/recording_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "core/base/error.h"

namespace retrograd {
namespace {

constexpr std::size_t blockWords = 4096;

std::array<std::uint64_t, blockWords> makeKeys() {
  std::array<std::uint64_t, blockWords> keys;
  for (std::size_t i = 0; i < blockWords; ++i) keys[i] = recordingKey(i);
  return keys;
}

}  // namespace

std::uint64_t recordingKey(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return (x ^ (x >> 31)) | 1;
}

std::uint64_t recordingHash(std::span<const std::byte> bytes) {
  static const auto keys = makeKeys();
  std::uint64_t hash = bytes.size() * recordingKey(std::uint64_t{1} << 33);
  std::array<std::uint64_t, blockWords> words;
  for (std::size_t begin = 0, block = 0; begin < bytes.size(); ++block) {
    const auto count = std::min(bytes.size() - begin, blockWords * sizeof(std::uint64_t));
    const auto wordCount = (count + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
    words[wordCount - 1] = 0;
    std::memcpy(words.data(), bytes.data() + begin, count);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < wordCount; ++i) sum += words[i] * keys[i];
    hash += sum * recordingKey((std::uint64_t{1} << 32) + block);
    begin += count;
  }
  return hash;
}

std::uint64_t parseRecordingHash(std::string_view text) {
  std::uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size())
    badInput("a hash is not 16 hexadecimal digits");
  return hash;
}

std::string recordingHashText(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace retrograd

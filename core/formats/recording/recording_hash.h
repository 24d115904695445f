#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace retrograd {

/// The hash of recordings (docs/recording-format.md) over the bytes of contiguous elements.
std::uint64_t recordingHash(std::span<const std::byte> bytes);
/// The odd multiplier of a place: parts of a sparse tensor are added up with those of 2^34 and up.
std::uint64_t recordingKey(std::uint64_t place);
inline constexpr std::uint64_t recordingPartKeys = std::uint64_t{1} << 34;

/// 16 hexadecimal digits. Throws Error(badInput) for anything else.
std::uint64_t parseRecordingHash(std::string_view text);
std::string recordingHashText(std::uint64_t hash);

}  // namespace retrograd

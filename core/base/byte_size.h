#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace retrograd {

/// A number of bytes as people write it: "4096", "100K", "1.5M", "2 GiB", "64 kB". K, M, G and T are powers of 1024
/// with or without "iB" or "B", in either case. nullopt for anything else, a negative number, and more than 2^62 bytes.
/// A fraction of a byte is dropped.
std::optional<std::int64_t> byteSizeIn(std::string_view text);

/// What to write, for the message where byteSizeIn() gives nothing.
inline constexpr const char* byteSizeForms = "a number of bytes, such as 4096, 100K, 1.5M or 2 GiB";

/// A number of bytes for people: "512 B", "1.5 KiB", "16 MiB".
std::string bytesText(std::int64_t bytes);

}  // namespace retrograd

#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace retrograd {

/// The count that a text says: "12", or "1e3". nullopt where it says none, a fraction, or one that is negative or
/// exceeds 2^63 - 1.
inline std::optional<std::int64_t> wholeNumber(std::string_view text) {
  const auto *begin = text.data(), *end = begin + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(begin, end, whole); read.ec == std::errc() && read.ptr == end)
    return whole < 0 ? std::nullopt : std::optional(whole);
  double real = 0;
  const auto read = std::from_chars(begin, end, real);
  constexpr double beyond = 9223372036854775808.0;  // 2^63
  if (read.ec != std::errc() || read.ptr != end || !(real >= 0 && real < beyond)) return std::nullopt;
  whole = static_cast<std::int64_t>(real);
  return static_cast<double>(whole) == real ? std::optional(whole) : std::nullopt;
}

}  // namespace retrograd

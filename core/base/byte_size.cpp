#include "core/base/byte_size.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/base/number_text.h"

namespace retrograd {
namespace {

constexpr std::int64_t mostBytes = std::int64_t{1} << 62;

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

/// The power of 1024 that a unit represents: 2 for "M", "MB" and "MiB".
std::optional<int> powerOf(std::string_view unit) {
  int power = 0;
  if (const auto at = unit.empty() ? std::string_view::npos : std::string_view("KMGT").find(upper(unit.front()));
      at != std::string_view::npos) {
    power = static_cast<int>(at) + 1;
    unit.remove_prefix(1);
    if (unit.size() == 2 && upper(unit.front()) == 'I') unit.remove_prefix(1);
  }
  const bool isOver = unit.empty() || (unit.size() == 1 && upper(unit.front()) == 'B');
  return isOver ? std::optional(power) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> byteSizeIn(std::string_view text) {
  text = trimmed(text);
  const auto digits = text.substr(0, text.find_first_not_of("0123456789."));
  if (digits.empty() || digits.front() == '.' || digits.back() == '.') return std::nullopt;
  const auto power = powerOf(trimmed(text.substr(digits.size())));
  if (!power) return std::nullopt;
  std::int64_t whole = 0;
  const char *const begin = &digits.front(), *const end = begin + digits.size();
  if (const auto read = std::from_chars(begin, end, whole);
      read.ec == std::errc() && read.ptr == end)  // not by way of a double, which has 53 bits
    return whole <= (mostBytes >> (10 * *power)) ? std::optional(whole << (10 * *power)) : std::nullopt;
  double real = 0;
  const auto read = std::from_chars(begin, end, real);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  const auto bytes = std::ldexp(real, 10 * *power);
  return bytes <= static_cast<double>(mostBytes) ? std::optional(static_cast<std::int64_t>(bytes)) : std::nullopt;
}

std::string bytesText(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < units.size(); ++unit) size /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.{}f} {}", size, size < 10 ? 1 : 0, units[unit]);
}

}  // namespace retrograd

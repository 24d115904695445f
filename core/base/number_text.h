#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace retrograd {

/// `text` without these characters around it.
inline std::string_view trimmed(std::string_view text, std::string_view around = " ") {
  const auto begin = text.find_first_not_of(around);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(around) - begin + 1);
}

/// The part of `text` before `mark`, which is taken away from it with the mark.
inline std::string_view takePart(std::string_view& text, char mark) {
  const auto part = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

/// The number that all of `text` is; nothing where it is none, has anything before or behind it, or lies outside of
/// what Number holds. As std::from_chars, which knows no locale, no leading spaces and no plus sign.
template <class Number>
std::optional<Number> numberIn(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// The same for the position of something in a list, written as the program writes it: "0", "12", not "012".
inline std::optional<std::size_t> positionIn(std::string_view text) {
  const auto position = numberIn<std::size_t>(text);
  return position && std::to_string(*position) == text ? position : std::nullopt;
}

/// The count that a text says: "12", or "1e3". nullopt where it says none, a fraction, or one that is negative or
/// exceeds 2^63 - 1.
inline std::optional<std::int64_t> wholeNumber(std::string_view text) {
  if (const auto whole = numberIn<std::int64_t>(text)) return *whole < 0 ? std::nullopt : whole;
  constexpr double beyond = 9223372036854775808.0;  // 2^63
  const auto real = numberIn<double>(text);
  if (!real || !(*real >= 0 && *real < beyond)) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(*real);
  return static_cast<double>(whole) == *real ? std::optional(whole) : std::nullopt;
}

}  // namespace retrograd

#pragma once
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace retrograd {

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

}  // namespace retrograd

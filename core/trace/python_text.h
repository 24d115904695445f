#pragma once
#include <string>
#include <string_view>

namespace retrograd {

/// A double as Python writes it, from which the same double can be read: "1.0", "1e-05", "float('nan')",
/// "-float('inf')".
std::string pythonReal(double number);

/// A quoted string. Control characters and bytes that are not UTF-8 become escapes, so that the text stays one line of
/// UTF-8.
std::string pythonString(std::string_view text);

/// Whether a text may name a value: an ASCII identifier that means nothing else in a printed trace (no keyword of
/// Python, not "torch", not
/// "_").
bool isPythonName(std::string_view text);

/// `text` as such a name: other characters become '_', and `prefix` goes in front where that is none yet.
std::string pythonName(std::string text, std::string_view prefix = "v_");

/// `text` as a word of a comment: as it is where it consists of letters, digits, '_' and '.', else quoted.
std::string word(std::string_view text);

/// `text` on one line: control characters become spaces.
std::string oneLine(std::string_view text);

/// Bytes of the UTF-8 character that `text` begins with; 0 where it begins with none.
std::size_t utf8Length(std::string_view text);

/// Items as `show` writes them, with commas between.
template <class Range, class Show>
std::string joined(const Range& range, Show&& show) {
  std::string text;
  for (const auto& item : range) {
    if (!text.empty()) text += ", ";
    text += show(item);
  }
  return text;
}

}  // namespace retrograd

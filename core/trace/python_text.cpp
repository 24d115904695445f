#include "core/trace/python_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace retrograd {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// Keywords of Python, and the names that a printed trace uses itself.
constexpr std::array<std::string_view, 40> reserved{
    "False",    "None",   "True",   "and",  "as",    "assert", "async",    "await",   "break", "class",
    "continue", "def",    "del",    "elif", "else",  "except", "finally",  "float",   "for",   "from",
    "global",   "if",     "import", "in",   "is",    "lambda", "nonlocal", "not",     "or",    "pass",
    "raise",    "return", "torch",  "try",  "while", "with",   "yield",    "complex", "math",  "_operator"};

}  // namespace

std::string pythonReal(double number) {
  if (std::isnan(number)) return "float('nan')";
  if (std::isinf(number)) return number > 0 ? "float('inf')" : "-float('inf')";
  auto text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::size_t utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first >= 0xf5 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  // No overlong forms, no surrogates, nothing beyond U+10FFFF.
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

std::string pythonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto length = utf8Length(text);
    const char c = text[0];
    if (length > 1) {
      out += text.substr(0, length);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length == 0 || isControl(c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + "\"";
}

bool isPythonName(std::string_view text) {
  if (text.empty() || text == "_" || !isLetter(text[0])) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return isLetter(c) || isDigit(c); })) return false;
  return std::find(reserved.begin(), reserved.end(), text) == reserved.end();
}

std::string pythonName(std::string text, std::string_view prefix) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c != '_' && !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  if (!isPythonName(text)) text.insert(0, prefix);
  return text;
}

std::string word(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(),
                                                  [](char c) { return isLetter(c) || isDigit(c) || c == '.'; });
  return plain ? std::string(text) : pythonString(text);
}

std::string oneLine(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const auto length = utf8Length(text);
    if (length == 0) line += '?';
    else if (length == 1 && isControl(text[0])) line += ' ';
    else line += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return line;
}

}  // namespace retrograd

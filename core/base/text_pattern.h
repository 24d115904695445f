#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace retrograd {

/// A pattern for names: a text, a glob or a regular expression. RE2 matches in time proportional to text times pattern,
/// whatever the pattern. Works on bytes. Copies share the compiled expression.
class TextPattern {
 public:
  /// What is wrong with a pattern, and where.
  struct Problem {
    std::size_t position = 0;
    std::string message;
  };

  /// '*' any text, '?' one character, "[a-z]", "[!a-z]" one of these; matches the whole text.
  static std::optional<TextPattern> glob(std::string_view pattern, Problem& problem);
  /// RE2's syntax: . * + ? {2,3} | ( ) [a-z] [^a-z] ^ $ \d \w \s \. and so on; matches a part of the text.
  static std::optional<TextPattern> regularExpression(std::string_view pattern, Problem& problem);
  /// Just this text, as a whole or as a part.
  static TextPattern exactly(std::string_view text);
  static TextPattern containing(std::string_view text);

  bool matches(std::string_view text) const;

 private:
  static std::optional<TextPattern> compile(const std::string& expression, bool isWhole, Problem& problem);

  std::string text_;  ///< what to find where there is no expression
  std::shared_ptr<const re2::RE2> expression_;
  bool isWhole_ = true;
};

}  // namespace retrograd

#pragma once
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// A pattern for names: a glob or a regular expression, run as an automaton in all states at once (Thompson 1968), so
/// that matching takes time in proportion to text times pattern, whatever the pattern. Works on bytes.
class TextPattern {
 public:
  /// What is wrong with a pattern, and where.
  struct Problem {
    std::size_t position = 0;
    std::string message;
  };

  /// '*' any text, '?' one character, "[a-z]", "[!a-z]" one of these; matches the whole text.
  static std::optional<TextPattern> glob(std::string_view pattern, Problem& problem);
  /// . * + ? | ( ) [a-z] [^a-z] ^ $ \d \w \s \. and so on; matches a part of the text.
  static std::optional<TextPattern> regularExpression(std::string_view pattern, Problem& problem);
  /// Just this text, as a whole or as a part.
  static TextPattern exactly(std::string_view text);
  static TextPattern containing(std::string_view text);

  bool matches(std::string_view text) const;

 private:
  friend class PatternCompiler;
  using Characters = std::bitset<256>;
  struct State {
    enum class Kind : std::uint8_t { characters, fork, jump, begin, end, match } kind = Kind::match;
    std::int32_t next = -1, other = -1;  ///< fork: both; else `next`
    std::uint32_t set = 0;               ///< characters: into sets_
  };
  void follow(std::vector<std::int32_t>& states, std::vector<char>& seen, std::int32_t state, bool isBegin,
              bool isEnd) const;

  std::vector<State> states_;
  std::vector<Characters> sets_;
  std::int32_t start_ = 0;
  bool isWhole_ = true;
};

}  // namespace retrograd

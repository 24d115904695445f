#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd::text {

/// Where something is in a text; both count from 1, columns in characters.
struct Place {
  int line = 1, column = 1;
};

/// A text and what it is called in errors.
struct Source {
  std::string name;
  std::string_view text;
};

/// Throws Error(badInput) at "name:line:column".
[[noreturn]] void fail(const Source& source, Place place, const std::string& message);

struct Token {
  /// A sign is one of ( ) [ ] , = : + - * / // % -> ; a name may be a dotted path; end comes after the last token of a
  /// line.
  enum class Kind : std::uint8_t { name, integer, real, string, sign, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< as written, strings with their quotes
  Place place;
};

/// "'mm'", "the end of the line": a token in a message.
std::string describe(const Token& token);

struct Comment {
  std::string_view text;  ///< behind "# "; empty where there is none
  Place place;
};

/// A logical line: what is in brackets may go over several lines. Blank lines are left out.
struct Line {
  std::vector<Token> tokens;  ///< ends with Kind::end; that alone for a line that is a comment
  Comment comment;
  int indent = 0;  ///< in spaces
  Place place;

  bool isComment() const { return tokens.size() == 1; }
};

/// Cuts a text into lines of tokens, one at a time.
class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source) {}
  /// False at the end of the text. Throws Error(badInput) for what is not a token.
  bool next(Line& line);

 private:
  bool atEnd() const { return at_ >= source_.text.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.text.size() ? source_.text[at_ + ahead] : '\0';
  }
  Place place() const { return {line_, column_}; }
  void advance(std::size_t bytes);
  void newLine();
  int indentation();
  void readComment(Line& line);
  Token readToken();
  std::size_t nameLength() const;
  std::size_t numberLength(bool& isReal) const;
  std::size_t stringLength() const;

  const Source& source_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

/// The content of a string that is with its quotes at `place`, escapes resolved. Throws Error(badInput) for an
/// escape that Python does not have.
std::string unquoted(const Source& source, std::string_view text, Place place);

}  // namespace retrograd::text

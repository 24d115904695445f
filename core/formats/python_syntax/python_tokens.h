#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd::python {

/// A text and what it is called in errors.
struct Text {
  std::string name;
  std::string_view text;
  bool hasBytes = false;  ///< "\xNN" in a string is a byte, as printed traces have it, not a character
};

/// Where something is in a text.
struct Place {
  int line = 1;            ///< from 1
  std::size_t offset = 0;  ///< in bytes from the start of the text
};

struct Token {
  /// newline: the end of a logical line (none within brackets); dots: "..."; imaginary: "1.5j".
  enum class Kind : std::uint8_t { name, integer, real, imaginary, string, sign, dots, newline, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< as written, strings with their quotes
  std::size_t offset = 0;
  int line = 1, column = 0;         ///< line from 1, column from 0 in bytes; a tab leads to the next multiple of 8
  std::uint32_t commentsBegin = 0;  ///< comments between the token before and this one, in Lexer::comments()
  std::uint32_t commentsEnd = 0;

  Place place() const { return {line, offset}; }
  bool isSign(std::string_view sign) const { return kind == Kind::sign && text == sign; }
  bool isName(std::string_view name) const { return kind == Kind::name && text == name; }
};

struct Comment {
  std::string_view text;  ///< behind "# "; spaces beyond the first one are part of it
  Place place;            ///< of this text
};

/// Throws Error(badInput) at "name:line:column", columns in characters from 1.
[[noreturn]] void fail(const Text& text, const Place& place, const std::string& message);
[[noreturn]] void fail(const Text& text, const Token& token, const std::string& message);
/// "'mm'", "the end of the line", for messages.
std::string describe(const Token& token);

/// Cuts Python text into tokens, one at a time, with one to look at.
class Lexer {
 public:
  explicit Lexer(const Text& text, std::size_t offset = 0);
  Lexer(const Text& text, const Place& begin);
  const Text& text() const { return text_; }
  const Token& peek() const { return token_; }
  /// The text behind peek(), from the next token on.
  std::string_view following() const;
  /// Whether the token after peek() is "=".
  bool assignmentFollows() const { return following().starts_with('=') && !following().starts_with("=="); }
  Token take();
  /// A name with what follows it behind dots: "torch.ops.aten.mm.default".
  Token takePath();
  bool takeSign(std::string_view sign);
  bool takeName(std::string_view name);
  void expectSign(std::string_view sign);
  std::string_view expectName(const std::string& what);
  [[noreturn]] void expected(const std::string& what) const;
  const std::vector<Comment>& comments() const { return comments_; }
  /// The last comment before `token`, without spaces around it; empty where there is none.
  std::string_view commentBefore(const Token& token) const;
  /// Forgets the first comments, at most those before the ones of peek(): a long text has more of them than should be
  /// in memory. Returns how many.
  std::uint32_t forgetComments(std::uint32_t count);

 private:
  void advance();
  void skipBlank(bool& isLineEnd);
  void readComment();
  void readNumber();
  void readString();
  void readSign();
  int columnOf(std::size_t offset) const;

  const Text& text_;
  std::size_t at_;
  std::size_t lineStart_;
  int line_;
  int depth_ = 0;
  bool lineIsEmpty_ = true;
  std::vector<Comment> comments_;
  Token token_;
};

/// The content of a string with its quotes, escapes resolved. Throws Error(badInput) for an escape that Python does not
/// have.
std::string unquoted(const Text& text, std::string_view string, const Place& place);

/// `text` without spaces around it.
std::string_view trimmed(std::string_view text);

}  // namespace retrograd::python

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd::fx {

/// A text, what it is called in errors, and the line in that file at which it begins.
struct Text {
  std::string name;
  std::string_view text;
  int firstLine = 1;
};

struct Token {
  /// newline: the end of a logical line (none within brackets); dots: "..."; imaginary: "1.5j".
  enum class Kind : std::uint8_t { name, integer, real, imaginary, string, sign, dots, newline, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< as written, strings with their quotes
  std::size_t offset = 0;
  int line = 1, column = 0;         ///< line from 1, column from 0 in bytes
  std::uint32_t commentsBegin = 0;  ///< comments between the token before and this one, in Lexer::comments()
  std::uint32_t commentsEnd = 0;

  bool isSign(std::string_view sign) const { return kind == Kind::sign && text == sign; }
  bool isName(std::string_view name) const { return kind == Kind::name && text == name; }
};

struct Comment {
  std::string_view text;  ///< behind '#', without spaces around it
  int line = 1;
};

/// Throws Error(badInput) at "name:line:column".
[[noreturn]] void fail(const Text& text, const Token& token, const std::string& message);
/// "'mm'", "the end of the line", for messages.
std::string describe(const Token& token);

/// Cuts Python text into tokens, one at a time, with one to look at.
class Lexer {
 public:
  explicit Lexer(const Text& text, std::size_t offset = 0);
  const Text& text() const { return text_; }
  const Token& peek() const { return token_; }
  /// The text behind peek(), from the next token on.
  std::string_view following() const;
  /// Whether the token after peek() is "=".
  bool assignmentFollows() const { return following().starts_with('=') && !following().starts_with("=="); }
  Token take();
  bool takeSign(std::string_view sign);
  bool takeName(std::string_view name);
  void expectSign(std::string_view sign);
  std::string_view expectName(const std::string& what);
  [[noreturn]] void expected(const std::string& what) const;
  const std::vector<Comment>& comments() const { return comments_; }
  /// The last comment before `token`; empty where there is none.
  std::string_view commentBefore(const Token& token) const;

 private:
  void advance();
  void skipBlank(bool& isLineEnd);
  void readComment();
  void readNumber();
  void readString();
  void readSign();

  const Text& text_;
  std::size_t at_;
  std::size_t lineStart_;
  int line_;
  int depth_ = 0;
  bool lineIsEmpty_ = true;
  std::vector<Comment> comments_;
  Token token_;
};

/// The content of a string token, escapes resolved. Throws Error(badInput) for an escape that Python does not have.
std::string unquoted(const Text& text, const Token& token);

}  // namespace retrograd::fx

#include "core/formats/python_syntax/python_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/trace/python_text.h"

namespace retrograd::python {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool isNamePart(char c) { return isNameStart(c) || isDigit(c); }
bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

/// Longest first.
constexpr std::array<std::string_view, 44> signs{"**=", "//=", ">>=", "<<=", "==", "!=", "<=", ">=", "->", "**", "//",
                                                 ">>",  "<<",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@=",
                                                 "(",   ")",   "[",   "]",   "{",  "}",  ",",  ":",  ";",  ".",  "=",
                                                 "+",   "-",   "*",   "/",   "%",  "@",  "&",  "|",  "^",  "~",  "<"};

}  // namespace

void fail(const Text& text, const Place& place, const std::string& message) {
  const auto before = text.text.substr(0, place.offset);
  const auto line = before.substr(before.rfind('\n') + 1);
  const auto isCharacter = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  badInput(message,
           fmt::format("{}:{}:{}", text.name, place.line, std::count_if(line.begin(), line.end(), isCharacter) + 1));
}

void fail(const Text& text, const Token& token, const std::string& message) { fail(text, token.place(), message); }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string describe(const Token& token) {
  if (token.kind == Token::Kind::newline) return "the end of the line";
  if (token.kind == Token::Kind::end) return "the end of the text";
  constexpr std::size_t longest = 60;
  const bool isLong = token.text.size() > longest;
  return fmt::format("'{}{}'", oneLine(token.text.substr(0, longest)), isLong ? "..." : "");
}

Lexer::Lexer(const Text& text, std::size_t offset)
    : Lexer(text,
            Place{1 + static_cast<int>(std::count(text.text.begin(), text.text.begin() + offset, '\n')), offset}) {}

Lexer::Lexer(const Text& text, const Place& begin)
    : text_(text), at_(begin.offset), lineStart_(begin.offset), line_(begin.line) {
  advance();
}

std::string_view Lexer::following() const {
  const auto next = text_.text.find_first_not_of(" \t\r\n", at_);
  return next == std::string_view::npos ? std::string_view() : text_.text.substr(next);
}

Token Lexer::take() {
  const auto token = token_;
  advance();
  return token;
}

Token Lexer::takePath() {
  auto token = token_;
  const auto text = text_.text;
  while (at_ + 1 < text.size() && text[at_] == '.' && isNameStart(text[at_ + 1]))
    for (++at_; at_ < text.size() && isNamePart(text[at_]);) ++at_;
  token.text = text.substr(token.offset, at_ - token.offset);
  advance();
  return token;
}

bool Lexer::takeSign(std::string_view sign) {
  if (!token_.isSign(sign)) return false;
  advance();
  return true;
}

bool Lexer::takeName(std::string_view name) {
  if (!token_.isName(name)) return false;
  advance();
  return true;
}

void Lexer::expectSign(std::string_view sign) {
  if (!takeSign(sign)) expected(fmt::format("'{}'", sign));
}

std::string_view Lexer::expectName(const std::string& what) {
  if (token_.kind != Token::Kind::name) expected(what);
  return take().text;
}

void Lexer::expected(const std::string& what) const {
  fail(text_, token_, fmt::format("expected {}, found {}", what, describe(token_)));
}

std::string_view Lexer::commentBefore(const Token& token) const {
  return token.commentsEnd > token.commentsBegin ? trimmed(comments_[token.commentsEnd - 1].text) : std::string_view();
}

std::uint32_t Lexer::forgetComments(std::uint32_t count) {
  count = std::min(count, token_.commentsBegin);
  comments_.erase(comments_.begin(), comments_.begin() + count);
  token_.commentsBegin -= count;
  token_.commentsEnd -= count;
  return count;
}

void Lexer::readComment() {
  const auto end = std::min(text_.text.find('\n', at_), text_.text.size());
  auto text = text_.text.substr(at_, end - at_);
  text.remove_prefix(text.starts_with("# ") ? 2 : 1);
  const Place place{line_, end - text.size()};
  if (text.ends_with('\r')) text.remove_suffix(1);
  comments_.push_back({text, place});
  at_ = end;
}

/// Leaves at_ at the next token, or at the newline that ends a logical line.
void Lexer::skipBlank(bool& isLineEnd) {
  const auto text = text_.text;
  while (at_ < text.size()) {
    if (isBlank(text[at_])) {
      ++at_;
    } else if (text[at_] == '#') {
      readComment();
    } else if (text[at_] == '\\' && at_ + 1 < text.size() && text[at_ + 1] == '\n') {
      at_ += 2, lineStart_ = at_, ++line_;
    } else if (text[at_] == '\n') {
      if (!lineIsEmpty_ && depth_ == 0) break;
      ++at_, lineStart_ = at_, ++line_;
    } else {
      return;
    }
  }
  isLineEnd = !lineIsEmpty_;
}

void Lexer::advance() {
  const auto begin = static_cast<std::uint32_t>(comments_.size());
  bool isLineEnd = false;
  skipBlank(isLineEnd);
  token_ = {Token::Kind::end, {}, at_, line_, columnOf(at_), begin, static_cast<std::uint32_t>(comments_.size())};
  if (isLineEnd) {
    token_.kind = Token::Kind::newline;
    lineIsEmpty_ = true;
    depth_ = 0;
    return;
  }
  if (at_ >= text_.text.size()) return;
  lineIsEmpty_ = false;
  const char c = text_.text[at_];
  const char next = at_ + 1 < text_.text.size() ? text_.text[at_ + 1] : '\0';
  if (isNameStart(c)) {
    auto end = at_;
    while (end < text_.text.size() && isNamePart(text_.text[end])) ++end;
    token_.kind = Token::Kind::name;
    token_.text = text_.text.substr(at_, end - at_);
  } else if (isDigit(c) || (c == '.' && isDigit(next))) {
    readNumber();
  } else if (c == '\'' || c == '"') {
    readString();
  } else {
    readSign();
  }
  at_ += token_.text.size();
}

/// Only blanks before it count as more than their bytes: nobody asks for the column of what is further right.
int Lexer::columnOf(std::size_t offset) const {
  auto column = static_cast<int>(offset - lineStart_);
  if (lineIsEmpty_ && text_.text.substr(lineStart_, offset - lineStart_).find('\t') != std::string_view::npos) {
    column = 0;
    for (const char c : text_.text.substr(lineStart_, offset - lineStart_))
      column = c == '\t' ? (column / 8 + 1) * 8 : c == ' ' ? column + 1 : column;
  }
  return column;
}

void Lexer::readNumber() {
  const auto text = text_.text;
  auto end = at_;
  const auto digits = [&] {
    while (end < text.size() && isDigit(text[end])) ++end;
  };
  token_.kind = Token::Kind::integer;
  digits();
  if (end < text.size() && text[end] == '.') {
    token_.kind = Token::Kind::real;
    ++end;
    digits();
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    auto exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (exponent < text.size() && isDigit(text[exponent])) {
      token_.kind = Token::Kind::real;
      end = exponent;
      digits();
    }
  }
  if (end < text.size() && text[end] == 'j') token_.kind = Token::Kind::imaginary, ++end;
  token_.text = text.substr(at_, end - at_);
  if (end < text.size() && isNamePart(text[end]))
    fail(text_, token_, fmt::format("'{}{}' is not a number", token_.text, text[end]));
}

void Lexer::readString() {
  const auto text = text_.text;
  auto end = at_ + 1;
  while (end < text.size() && text[end] != text[at_] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size() || text[end] == '\n') fail(text_, token_, "expected a closing quote on this line");
  token_.kind = Token::Kind::string;
  token_.text = text.substr(at_, end + 1 - at_);
}

void Lexer::readSign() {
  const auto rest = text_.text.substr(at_);
  if (rest.starts_with("...")) {
    token_.kind = Token::Kind::dots;
    token_.text = rest.substr(0, 3);
    return;
  }
  token_.kind = Token::Kind::sign;
  const auto* found = std::find_if(signs.begin(), signs.end(), [&](auto sign) { return rest.starts_with(sign); });
  if (found == signs.end() && !rest.starts_with(">")) {
    const auto character = rest.substr(0, std::max<std::size_t>(utf8Length(rest), 1));
    fail(text_, token_, "expected a name, a number or a sign, found " + pythonString(character));
  }
  token_.text = rest.substr(0, found == signs.end() ? 1 : found->size());
  const char c = token_.text.front();
  if (token_.text.size() > 1) return;
  if (c == '(' || c == '[' || c == '{') ++depth_;
  if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
}

namespace {

void appendUtf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  }
}

int hexDigit(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view plainEscapes = "\\'\"nrtabfv0", plainMeanings{"\\'\"\n\r\t\a\b\f\v\0", 11};

}  // namespace

std::string unquoted(const Text& text, std::string_view string, const Place& place) {
  const auto body = string.substr(1, string.size() - 2);
  std::string out;
  out.reserve(body.size());
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    const char c = ++i < body.size() ? body[i] : '\0';
    if (const auto plain = plainEscapes.find(c); plain != std::string_view::npos && c != '\0') {
      out += plainMeanings[plain];
      continue;
    }
    const std::size_t length = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    std::uint32_t code = 0;
    bool isGood = length > 0;
    for (std::size_t k = 1; isGood && k <= length; ++k) {
      const int digit = i + k < body.size() ? hexDigit(body[i + k]) : -1;
      isGood = digit >= 0 && code < 0x8000000;
      code = code * 16 + static_cast<std::uint32_t>(std::max(digit, 0));
    }
    if (!isGood || code > 0x10ffff) fail(text, place, "expected an escape of Python after a backslash in this string");
    if (text.hasBytes && c == 'x') out += static_cast<char>(code);
    else appendUtf8(out, code);
    i += length;
  }
  return out;
}

}  // namespace retrograd::python

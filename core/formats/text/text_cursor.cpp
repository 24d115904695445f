#include "core/formats/text/text_source.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/trace/python_text.h"

namespace retrograd::text {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void fail(const Source& source, Place place, const std::string& message) {
  throw Error(ErrorCode::badInput, message,
              source.name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column));
}

std::string describe(const Token& token) {
  if (token.kind == Token::Kind::end) return "the end of the line";
  constexpr std::size_t longest = 60;
  return token.text.size() <= longest ? "'" + oneLine(token.text) + "'"
                                      : "'" + oneLine(token.text.substr(0, longest)) + "...'";
}

void Lexer::advance(std::size_t bytes) {
  for (std::size_t i = 0; i < bytes && !atEnd(); ++i, ++at_)
    if ((static_cast<unsigned char>(peek()) & 0xc0) != 0x80) ++column_;  // a character of several bytes is one column
}

void Lexer::newLine() {
  ++at_;
  ++line_;
  column_ = 1;
}

/// Spaces before the first token; a tab leads to the next multiple of 8, as Python has it.
int Lexer::indentation() {
  int indent = 0;
  for (; peek() == ' ' || peek() == '\t' || peek() == '\f' || (peek() == '\r' && peek(1) == '\n'); advance(1))
    indent = peek() == '\t' ? (indent / 8 + 1) * 8 : peek() == ' ' ? indent + 1 : indent;
  return indent;
}

void Lexer::readComment(Line& line) {
  const auto rest = source_.text.substr(at_);
  auto text = rest.substr(0, rest.find('\n'));
  const auto whole = text.size();
  if (text.ends_with('\r')) text.remove_suffix(1);
  const std::size_t sign = text.starts_with("# ") ? 2 : 1;
  if (line.comment.text.empty()) line.comment = {text.substr(sign), {line_, column_ + static_cast<int>(sign)}};
  advance(whole);
}

bool Lexer::next(Line& line) {
  line.tokens.clear();  // keeps its memory for the next line
  line.comment = {};
  line.indent = 0;
  line.place = {};
  int brackets = 0;
  for (bool atStart = true;;) {
    const int indent = indentation();
    if (atEnd()) {
      if (atStart) return false;
      break;
    }
    if (peek() == '\n' && (atStart || brackets > 0)) {  // a blank line, or one that goes on
      newLine();
      continue;
    }
    if (peek() == '\n') {
      newLine();
      break;
    }
    if (atStart) {
      line.indent = indent;
      line.place = place();
      atStart = false;
    }
    if (peek() == '#') {
      readComment(line);
      continue;
    }
    chargeReading(sizeof(Token));
    line.tokens.push_back(readToken());
    const auto& token = line.tokens.back();
    if (token.kind != Token::Kind::sign) continue;
    if (token.text == "(" || token.text == "[") ++brackets;
    if (token.text == ")" || token.text == "]") brackets = std::max(0, brackets - 1);
  }
  line.tokens.push_back({Token::Kind::end, {}, place()});
  return true;
}

Token Lexer::readToken() {
  static constexpr std::string_view longSigns[] = {"//", "->"};
  Token token;
  token.place = place();
  std::size_t length = 0;
  bool isReal = false;
  if (isLetter(peek())) {
    token.kind = Token::Kind::name;
    length = nameLength();
  } else if (isDigit(peek()) || (peek() == '.' && isDigit(peek(1)))) {
    length = numberLength(isReal);
    token.kind = isReal ? Token::Kind::real : Token::Kind::integer;
  } else if (peek() == '"' || peek() == '\'') {
    token.kind = Token::Kind::string;
    length = stringLength();
    if (length == 0) fail(source_, token.place, "expected a closing quote on this line");
  } else {
    token.kind = Token::Kind::sign;
    const auto rest = source_.text.substr(at_);
    length =
        std::any_of(std::begin(longSigns), std::end(longSigns), [&](std::string_view s) { return rest.starts_with(s); })
            ? 2
            : 1;
    if (length == 1 && std::string_view("()[],=:+-*/%").find(peek()) == std::string_view::npos) {
      const auto character = rest.substr(0, std::max<std::size_t>(utf8Length(rest), 1));
      fail(source_, token.place, "expected an op, a name or a number, found " + pythonString(character));
    }
  }
  token.text = source_.text.substr(at_, length);
  advance(length);
  return token;
}

/// An identifier and what follows it behind dots: "torch.ops.aten.mm.default".
std::size_t Lexer::nameLength() const {
  std::size_t length = 0;
  while (isLetter(peek(length)) || isDigit(peek(length)) || (peek(length) == '.' && isLetter(peek(length + 1))))
    ++length;
  return length;
}

std::size_t Lexer::numberLength(bool& isReal) const {
  std::size_t length = 0;
  const auto digits = [&] {
    while (isDigit(peek(length))) ++length;
  };
  digits();
  if (peek(length) == '.') {
    isReal = true;
    ++length;
    digits();
  }
  if (peek(length) == 'e' || peek(length) == 'E') {
    const std::size_t sign = peek(length + 1) == '-' || peek(length + 1) == '+' ? 1 : 0;
    if (isDigit(peek(length + 1 + sign))) {
      isReal = true;
      length += 1 + sign;
      digits();
    }
  }
  return length;
}

/// With both quotes; 0 where the line ends before the second.
std::size_t Lexer::stringLength() const {
  const char quote = peek();
  for (std::size_t length = 1;; ++length) {
    const char c = peek(length);
    if (c == '\n' || at_ + length >= source_.text.size()) return 0;
    if (c == quote) return length + 1;
    if (c == '\\' && peek(length + 1) != '\n') ++length;
  }
}

std::string unquoted(const Source& source, std::string_view text, Place place) {
  static constexpr std::pair<char, char> escapes[] = {{'n', '\n'},  {'r', '\r'}, {'t', '\t'},
                                                      {'\\', '\\'}, {'"', '"'},  {'\'', '\''}};
  const auto inner = text.substr(1, text.size() - 2);
  std::string content;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      content += inner[i];
      continue;
    }
    ++i;
    const auto* known = std::find_if(std::begin(escapes), std::end(escapes),
                                     [&](const auto& e) { return i < inner.size() && e.first == inner[i]; });
    unsigned code = 0;
    if (known != std::end(escapes)) {
      content += known->second;
    } else if (i + 2 < inner.size() && inner[i] == 'x' &&
               std::from_chars(&inner[i + 1], &inner[i + 1] + 2, code, 16).ptr == &inner[i + 1] + 2) {
      content += static_cast<char>(code);
      i += 2;
    } else {
      fail(source, place, "expected \\n, \\r, \\t, \\xNN or a quote after a backslash in this string");
    }
  }
  return content;
}

}  // namespace retrograd::text

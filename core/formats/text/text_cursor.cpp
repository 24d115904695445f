// The cursor, and what an expression is called.
#include "core/formats/text/text_cursor.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/trace/python_text.h"

namespace retrograd::text {
namespace {

bool isWordPart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

std::string_view nameIn(const Source& source, const Expression& expression) {
  using Kind = Expression::Kind;
  const bool mayBe = expression.is(Kind::path) || expression.is(Kind::real) || expression.is(Kind::ellipsis);
  const auto text = mayBe ? written(source, expression) : std::string_view();
  const bool isNumber =
      text.empty() || !isWordPart(text.front()) || (text.front() >= '0' && text.front() <= '9') || text.front() == '.';
  return expression.is(Kind::path) || !isNumber ? text : std::string_view();
}

Place Cursor::place() const { return {place_.line, place_.offset + at_}; }

void Cursor::expected(const std::string& what) const {
  const auto word = plainWord();
  const auto found =
      atEnd()
          ? std::string("the end")
          : "'" + oneLine(word.empty() ? rest().substr(0, std::max<std::size_t>(utf8Length(rest()), 1)) : word) + "'";
  fail(source_, place(), "expected " + what + ", found " + found);
}

bool Cursor::take(std::string_view literal) {
  if (!rest().starts_with(literal)) return false;
  const bool endsInWord = !literal.empty() && isWordPart(literal.back());
  if (endsInWord && at_ + literal.size() < text_.size() && isWordPart(text_[at_ + literal.size()])) return false;
  at_ += literal.size();
  return true;
}

void Cursor::expect(std::string_view literal) {
  if (!take(literal)) expected("'" + std::string(literal) + "'");
}

std::string_view Cursor::plainWord() const {
  std::size_t length = 0;
  while (at_ + length < text_.size() && isWordPart(text_[at_ + length])) ++length;
  return text_.substr(at_, length);
}

std::string Cursor::word() {
  if (rest().starts_with('"')) {
    const auto where = place();
    const auto before = at_;
    if (!quoted()) return {};
    return unquoted(source_, text_.substr(before, at_ - before), where);
  }
  const auto plain = plainWord();
  at_ += plain.size();
  return std::string(plain);
}

std::string Cursor::expectWord(const std::string& what) {
  auto text = word();
  if (text.empty()) expected(what);
  return text;
}

std::optional<Cursor> Cursor::quoted() {
  if (!rest().starts_with('"')) return std::nullopt;
  for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
    if (text_[i] == '\\') {
      ++i;
    } else if (text_[i] == '"') {
      auto where = place();
      ++where.offset;
      const Cursor inner(source_, text_.substr(at_ + 1, i - at_ - 1), where);
      at_ = i + 1;
      return inner;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> Cursor::integer() {
  std::int64_t value = 0;
  const auto* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) return std::nullopt;
  at_ += end - begin;
  return value;
}

std::int64_t Cursor::expectInteger(const std::string& what) {
  const auto value = integer();
  if (!value) expected(what);
  return *value;
}

}  // namespace retrograd::text

#pragma once
#include <optional>

#include "core/base/tensor_meta.h"
#include "core/formats/python_syntax/python_expression.h"

namespace retrograd::text {

using python::Comment;
using python::Expression;
using python::fail;
using python::Place;
using python::unquoted;
using Source = python::Text;

/// An expression as the text has it. A view of the text, good after the expression is gone.
inline std::string_view written(const Source& source, const Expression& expression) {
  return source.text.substr(expression.place.offset, expression.size);
}

/// The name that an expression is, with its dots; empty for anything else. "inf" and "nan" may name values too.
std::string_view nameIn(const Source& source, const Expression& expression);

/// Reads a comment or a type from left to right.
class Cursor {
 public:
  Cursor(const Source& source, std::string_view text, Place place) : source_(source), text_(text), place_(place) {}

  bool atEnd() const { return at_ >= text_.size(); }
  std::string_view rest() const { return text_.substr(at_); }
  Place place() const;
  [[noreturn]] void expected(const std::string& what) const;

  /// Takes `literal` where it is next; a word only as a whole.
  bool take(std::string_view literal);
  void expect(std::string_view literal);
  /// Letters, digits, '_' and '.', or a quoted string; empty where neither is here.
  std::string word();
  std::string expectWord(const std::string& what);
  /// Letters, digits, '_' and '.' alone.
  std::string_view plainWord() const;
  /// The text between two quotes, without them; escapes are left alone. The cursor that is returned has their place.
  std::optional<Cursor> quoted();
  std::optional<std::int64_t> integer();
  std::int64_t expectInteger(const std::string& what);
  void skip(std::size_t bytes) { at_ += bytes; }

 private:
  const Source& source_;
  std::string_view text_;
  Place place_;
  std::size_t at_ = 0;
};

/// A tensor's type as behind a line: "[cpu] f32[2, s0=4] strides [4, 1] offset 2 sparse_csr conj neg number". The
/// device may be left out. Throws Error(badInput): no such type, negative sizes, more than 2^63 bytes.
TensorMeta readType(const Source& source, Cursor& cursor);

}  // namespace retrograd::text

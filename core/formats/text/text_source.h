#pragma once
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

}  // namespace retrograd::text

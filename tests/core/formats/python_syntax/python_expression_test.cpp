// One parser of Python's expressions.
#include "core/formats/python_syntax/python_expression.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace retrograd::python {
namespace {

using Kind = Expression::Kind;

/// An expression with the text that it covers.
struct Covered {
  Expression expression;
  std::string text;
};

Covered first(const std::string& all, bool hasBytes = false) {
  const Text text{"test", all, hasBytes};
  Lexer lexer(text);
  const ValueNames none;
  auto expression = ExpressionReader(lexer, none).readTuple("");
  return {expression, all.substr(expression.place.offset, expression.size)};
}

std::string refusal(const std::string& all) {
  try {
    first(all);
  } catch (const Error& e) {
    return e.what();
  }
  return "read";
}

// An expression knows its part of the text, brackets around it included, from which symbolic sizes are shown.
TEST(PythonExpression, AnExpressionKnowsItsPartOfTheText) {
  for (const auto* text :
       {"x", "torch.ops.aten.mm.default", "-1", "- x", "(s0 + 1) // 2", "2*(s0 - 1)", "(a)", "[a, (b)]",
        "f(x, dim = [1], y)", "x[1:, :2]", "{'k': 1}", "'a' 'b'", "a.b(c).d", "...", "1.5j"})
    EXPECT_EQ(first(std::string("  ") + text + "  # comment").text, text);
  const auto sum = first("(s0 + 1) // f(k = (2))").expression;
  ASSERT_TRUE(sum.is(Kind::binary));
  EXPECT_EQ(sum.items[0].place.offset, 0U);
  EXPECT_EQ(sum.items[0].size, 8U);
  const auto& keyword = sum.items[1].items.at(1);
  EXPECT_EQ(keyword.place.offset, 14U);
  EXPECT_EQ(keyword.items[0].size, 3U);
}

// Operators bind as in Python.
TEST(PythonExpression, OperatorsBindAsInPython) {
  const std::vector<std::string> none;
  const auto shown = [&](const std::string& text) { return toText(first(text).expression, none); };
  EXPECT_EQ(shown("a - b - c*d**-e"), "(a - b) - (c * (d ** (-e)))");
  EXPECT_EQ(shown("a + b == c | d & e << 1"), "(a + b) == (c | (d & (e << 1)))");
  EXPECT_EQ(shown("-2**2, ~a % b"), "(-(2 ** 2), (~a) % b)");
}

// Columns count characters, indentation counts tabs, escapes of bytes are those of printed traces alone.
TEST(PythonExpression, PlacesAndEscapes) {
  EXPECT_EQ(refusal("f(\"\u00e9\u00e9\", ?)"), "test:1:9: expected a name, a number or a sign, found \"?\"");
  EXPECT_EQ(refusal("f(a,\n  b c)"), "test:2:5: expected ',' or ')', found 'c'");
  EXPECT_EQ(refusal("\"\\q\""), "test:1:1: expected an escape of Python after a backslash in this string");
  EXPECT_EQ(first("\"\\xe9\"").expression.text, "\u00e9");
  EXPECT_EQ(first("\"\\xe9\"", true).expression.text, "\xe9");
  const Text text{"test", "a\n\tb\n  \tc\n"};
  Lexer lexer(text);
  std::vector<int> columns;
  for (; lexer.peek().kind != Token::Kind::end; lexer.take())
    if (lexer.peek().kind == Token::Kind::name) columns.push_back(lexer.peek().column);
  EXPECT_EQ(columns, (std::vector<int>{0, 8, 8}));
}

// Comments that were read may be forgotten, so that a long text does not hold them all.
TEST(PythonExpression, CommentsAreForgotten) {
  const Text text{"test", "# one\n#two  \na  # three\n#  four\nb\n"};
  Lexer lexer(text);
  EXPECT_EQ(lexer.peek().commentsEnd, 2U);
  EXPECT_EQ(lexer.comments()[1].text, "two  ");
  lexer.take();
  EXPECT_EQ(lexer.commentBefore(lexer.peek()), "three");
  EXPECT_EQ(lexer.forgetComments(5), 2U);
  EXPECT_EQ(lexer.commentBefore(lexer.peek()), "three");
  lexer.take();
  EXPECT_EQ(lexer.comments().at(lexer.peek().commentsBegin).text, " four");
}

}  // namespace
}  // namespace retrograd::python

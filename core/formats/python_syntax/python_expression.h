#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/formats/python_syntax/python_tokens.h"

namespace retrograd::python {

/// An expression of Python text as a tree. Plain data: nothing says what a call means.
struct Expression {
  enum class Kind : std::uint8_t {
    none,     ///< None
    boolean,  ///< `integer` is 0 or 1
    integer,
    bigInteger,  ///< beyond 64 bits; `text` has its digits and sign
    real,        ///< also inf and nan
    complex,     ///< real + imaginary: `1.5j`, and `complex(a, b)` of numbers
    string,      ///< `text`, escapes resolved
    ellipsis,
    value,      ///< a name that means a value: `integer` is its index
    path,       ///< any other name, dotted or not: "torch.float32", "torch.ops.aten.mm.default",
                ///< "self._tensor_constant0"
    attribute,  ///< items[0].text
    call,       ///< items[0](items[1..]); keyword arguments are of kind keyword
    keyword,    ///< text = items[0]; in calls only
    item,       ///< items[0][items[1]]
    slice,      ///< items[0]:items[1]:items[2], each may be none
    tuple,
    list,
    dict,    ///< items: key, value, key, value, ...
    unary,   ///< text items[0], text one of - + ~
    binary,  ///< items[0] text items[1], text a sign such as "+" or "=="
    inPlace  ///< never read, made of statements: `items[0] text items[1]` with text "+=", "*=", ...; text "[]=":
             ///< items[0][items[1]] = items[2]
  };
  Kind kind = Kind::none;
  std::string text;
  std::int64_t integer = 0;
  double real = 0, imaginary = 0;
  std::vector<Expression> items;
  Place place;           ///< where it begins
  std::size_t size = 0;  ///< bytes in the text, brackets around it included

  bool is(Kind k) const { return kind == k; }
  /// Of Kind::value: which value.
  std::size_t valueIndex() const { return static_cast<std::size_t>(integer); }
  bool isPath(std::string_view path) const { return kind == Kind::path && text == path; }
  /// A call of this path.
  bool isCallOf(std::string_view path) const { return kind == Kind::call && items.front().isPath(path); }
  /// The argument of a call given by keyword; null where there is none.
  const Expression* keyword(std::string_view name) const;
};

/// Visits the value indices below `expression`, depth first, left to right.
template <class Visitor>
void forEachValue(const Expression& expression, Visitor&& visit) {
  if (expression.kind == Expression::Kind::value) visit(expression.integer);
  for (const auto& item : expression.items) forEachValue(item, visit);
}

/// An expression as Python text. `names`: of the values, by index.
std::string toText(const Expression& expression, const std::vector<std::string>& names);

/// Which names are values, and their indices. Points into the text.
using ValueNames = std::unordered_map<std::string_view, std::size_t>;

/// Reads expressions from a lexer. Nesting is limited; so is nothing else, the tree has a node for a token at most.
class ExpressionReader {
 public:
  static constexpr int maxDepth = 200;
  ExpressionReader(Lexer& lexer, const ValueNames& values) : lexer_(lexer), values_(values) {}

  /// An expression without commas outside of brackets.
  Expression read();
  /// The same; with commas it is a tuple ("x[0, 1]").
  Expression readTuple(std::string_view closing);

 private:
  void enter();
  /// The expression read last becomes part of one around it, next to another of height `sibling`.
  void grow(int sibling);
  Token take();
  bool takeSign(std::string_view sign);
  void expectClosing(std::string_view closing);
  Expression begin(Expression::Kind kind) const;
  static Expression around(Expression::Kind kind, std::string_view text, Expression first);
  void end(Expression& expression) const;
  void addItem(Expression& list, Expression item, int& tallest);
  Expression binary(int loosest);
  Expression unary();
  Expression power();
  Expression postfix();
  Expression primary();
  Expression number();
  Expression name();
  Expression string();
  Expression bracketed(Expression::Kind kind, std::string_view closing);
  Expression dict();
  Expression call(Expression callee);
  Expression argument();
  Expression index();
  Expression sliceOrValue();

  Lexer& lexer_;
  const ValueNames& values_;
  int depth_ = 0;
  int height_ = 0;       ///< of the expression read last: a chain "a.b.c" is high though nothing is nested
  std::size_t end_ = 0;  ///< of the token taken last
};

/// One expression that is all of `text`, without values. Throws Error(badInput) at "name:line:column".
Expression readExpression(std::string_view text, const std::string& name);

}  // namespace retrograd::python

#include "core/formats/fx/fx_expression.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/base/number_text.h"
#include "core/formats/fx/fx_reader.h"

namespace retrograd::fx {
namespace {

using Kind = Expression::Kind;

Expression make(Kind kind, std::string text = {}) {
  Expression expression;
  expression.kind = kind;
  expression.text = std::move(text);
  return expression;
}

Expression with(Kind kind, std::string_view text, Expression first) {
  auto expression = make(kind, std::string(text));
  expression.items.push_back(std::move(first));
  return expression;
}

Expression ofReal(double real) {
  auto expression = make(Kind::real);
  expression.real = real;
  return expression;
}

/// Levels of Python's binary operators, loosest first; all of one level group from the left.
constexpr std::array<std::array<std::string_view, 7>, 7> levels{{{"==", "!=", "<=", ">=", "<", ">", ""},
                                                                 {"|", "", "", "", "", "", ""},
                                                                 {"^", "", "", "", "", "", ""},
                                                                 {"&", "", "", "", "", "", ""},
                                                                 {"<<", ">>", "", "", "", "", ""},
                                                                 {"+", "-", "", "", "", "", ""},
                                                                 {"*", "//", "/", "%", "@", "", ""}}};

bool isOfLevel(const Token& token, int level) {
  if (token.kind != Token::Kind::sign) return false;
  for (const auto sign : levels[level]) {
    if (!sign.empty() && token.text == sign) return true;
  }
  return false;
}

/// A number with its sign is a literal.
bool negate(Expression& number) {
  if (number.kind == Kind::integer && number.integer != std::numeric_limits<std::int64_t>::min()) {
    number.integer = -number.integer;
  } else if (number.kind == Kind::real) {
    number.real = -number.real;
  } else if (number.kind == Kind::complex) {
    number.real = -number.real, number.imaginary = -number.imaginary;
  } else if (number.kind == Kind::bigInteger && !number.text.starts_with('-')) {
    number.text.insert(0, 1, '-');
    if (const auto fits = numberIn<std::int64_t>(number.text)) {
      number = make(Kind::integer);
      number.integer = *fits;
    }
  } else {
    return false;
  }
  return true;
}

/// `complex(a, b)` of two numbers is a literal.
void foldComplex(Expression& call) {
  if (!call.isCallOf("complex") || call.items.size() != 3) return;
  const auto part = [](const Expression& e) {
    return e.kind == Kind::integer ? static_cast<double>(e.integer) : e.real;
  };
  for (std::size_t i = 1; i < 3; ++i) {
    if (call.items[i].kind != Kind::real && call.items[i].kind != Kind::integer) return;
  }
  auto literal = make(Kind::complex);
  literal.real = part(call.items[1]);
  literal.imaginary = part(call.items[2]);
  call = std::move(literal);
}

}  // namespace

void ExpressionReader::enter() {
  if (++depth_ > maxDepth) fail(lexer_.text(), lexer_.peek(), "an expression nests too deeply");
}

void ExpressionReader::grow(int sibling) {
  height_ = std::max(height_, sibling) + 1;
  if (height_ > 2 * maxDepth) fail(lexer_.text(), lexer_.peek(), "an expression nests too deeply");
}

Expression ExpressionReader::read() {
  enter();
  auto expression = binary(0);
  --depth_;
  return expression;
}

Expression ExpressionReader::readTuple(std::string_view closing) {
  auto first = read();
  if (!lexer_.peek().isSign(",")) return first;
  auto tuple = with(Kind::tuple, "", std::move(first));
  int tallest = height_;
  while (lexer_.takeSign(",")) {
    const auto& next = lexer_.peek();
    if (next.kind == Token::Kind::newline || next.kind == Token::Kind::end || next.isSign(";") ||
        (!closing.empty() && next.isSign(closing)))
      break;
    tuple.items.push_back(read());
    tallest = std::max(tallest, height_);
  }
  grow(tallest);
  return tuple;
}

Expression ExpressionReader::binary(int level) {
  if (level == static_cast<int>(levels.size())) return unary();
  auto left = binary(level + 1);
  while (isOfLevel(lexer_.peek(), level)) {
    const int leftHeight = height_;
    auto both = with(Kind::binary, lexer_.take().text, std::move(left));
    both.items.push_back(binary(level + 1));
    left = std::move(both);
    grow(leftHeight);
  }
  return left;
}

Expression ExpressionReader::unary() {
  const auto& token = lexer_.peek();
  if (!token.isSign("-") && !token.isSign("+") && !token.isSign("~")) return power();
  enter();
  const auto sign = lexer_.take().text;
  auto operand = unary();
  --depth_;
  grow(0);
  if (sign == "-" && negate(operand)) return operand;
  return with(Kind::unary, sign, std::move(operand));
}

Expression ExpressionReader::power() {
  auto base = postfix();
  if (!lexer_.peek().isSign("**")) return base;
  enter();
  const int baseHeight = height_;
  lexer_.take();
  auto both = with(Kind::binary, "**", std::move(base));
  both.items.push_back(unary());
  --depth_;
  grow(baseHeight);
  return both;
}

Expression ExpressionReader::postfix() {
  auto expression = primary();
  for (;;) {
    if (lexer_.takeSign(".")) {
      const auto attribute = lexer_.expectName("a name after '.'");
      if (expression.kind == Kind::path) {
        expression.text.append(1, '.').append(attribute);
      } else {
        expression = with(Kind::attribute, attribute, std::move(expression));
        grow(0);
      }
    } else if (lexer_.peek().isSign("(")) {
      expression = call(std::move(expression));
    } else if (lexer_.takeSign("[")) {
      const int baseHeight = height_;
      auto item = with(Kind::item, "", std::move(expression));
      item.items.push_back(index());
      grow(baseHeight);
      lexer_.expectSign("]");
      expression = std::move(item);
    } else {
      return expression;
    }
  }
}

Expression ExpressionReader::index() {
  auto first = sliceOrValue();
  if (!lexer_.peek().isSign(",")) return first;
  auto tuple = with(Kind::tuple, "", std::move(first));
  int tallest = height_;
  while (lexer_.takeSign(",") && !lexer_.peek().isSign("]")) {
    tuple.items.push_back(sliceOrValue());
    tallest = std::max(tallest, height_);
  }
  grow(tallest);
  return tuple;
}

Expression ExpressionReader::sliceOrValue() {
  const auto isPart = [&] {
    return !lexer_.peek().isSign(":") && !lexer_.peek().isSign("]") && !lexer_.peek().isSign(",");
  };
  Expression first;
  height_ = 1;
  if (isPart()) {
    first = read();
    if (!lexer_.peek().isSign(":")) return first;
  }
  auto slice = with(Kind::slice, "", std::move(first));
  slice.items.resize(3);
  int tallest = height_;
  for (std::size_t i = 1; i < 3 && lexer_.takeSign(":"); ++i) {
    if (isPart()) slice.items[i] = read();
    tallest = std::max(tallest, height_);
  }
  grow(tallest);
  return slice;
}

Expression ExpressionReader::call(Expression callee) {
  lexer_.expectSign("(");
  auto call = with(Kind::call, "", std::move(callee));
  int tallest = height_;
  while (!lexer_.peek().isSign(")")) {
    std::string_view keyword;
    if (lexer_.peek().kind == Token::Kind::name && lexer_.assignmentFollows()) {
      keyword = lexer_.take().text;
      lexer_.take();
    }
    auto argument = read();
    call.items.push_back(keyword.empty() ? std::move(argument) : with(Kind::keyword, keyword, std::move(argument)));
    tallest = std::max(tallest, height_ + 1);
    if (!lexer_.takeSign(",")) break;
  }
  lexer_.expectSign(")");
  grow(tallest);
  foldComplex(call);
  return call;
}

Expression ExpressionReader::bracketed(Kind kind, std::string_view closing) {
  auto list = make(kind);
  bool hasComma = false;
  int tallest = 0;
  lexer_.take();
  while (!lexer_.peek().isSign(closing)) {
    list.items.push_back(read());
    tallest = std::max(tallest, height_);
    if (!lexer_.takeSign(",")) break;
    hasComma = true;
  }
  lexer_.expectSign(closing);
  height_ = 0;
  grow(tallest);
  if (kind == Kind::tuple && list.items.size() == 1 && !hasComma)
    return std::exchange(list.items.front(), {});  // plain parentheses
  return list;
}

Expression ExpressionReader::dict() {
  auto dict = make(Kind::dict);
  int tallest = 0;
  lexer_.take();
  while (!lexer_.peek().isSign("}")) {
    dict.items.push_back(read());
    tallest = std::max(tallest, height_);
    lexer_.expectSign(":");
    dict.items.push_back(read());
    tallest = std::max(tallest, height_);
    if (!lexer_.takeSign(",")) break;
  }
  lexer_.expectSign("}");
  height_ = 0;
  grow(tallest);
  return dict;
}

Expression ExpressionReader::number() {
  const auto token = lexer_.take();
  auto text = token.text;
  if (token.kind == Token::Kind::integer) {
    const auto fits = numberIn<std::int64_t>(text);
    if (!fits) return make(Kind::bigInteger, std::string(text));
    auto integer = make(Kind::integer);
    integer.integer = *fits;
    return integer;
  }
  if (token.kind == Token::Kind::imaginary) text.remove_suffix(1);
  const auto real = numberIn<double>(text);
  if (!real) fail(lexer_.text(), token, "a number that a 64-bit float does not hold");
  if (token.kind == Token::Kind::real) return ofReal(*real);
  auto complex = make(Kind::complex);
  complex.imaginary = *real;
  return complex;
}

Expression ExpressionReader::name() {
  const auto token = lexer_.take();
  if (const auto value = values_.find(token.text); value != values_.end()) {
    auto use = make(Kind::value);
    use.integer = static_cast<std::int64_t>(value->second);
    return use;
  }
  if (token.text == "None") return {};
  if (token.text == "True" || token.text == "False") {
    auto boolean = make(Kind::boolean);
    boolean.integer = token.text == "True";
    return boolean;
  }
  if (token.text == "Ellipsis") return make(Kind::ellipsis);
  if (token.text == "inf") return ofReal(std::numeric_limits<double>::infinity());
  if (token.text == "nan") return ofReal(std::numeric_limits<double>::quiet_NaN());
  return make(Kind::path, std::string(token.text));
}

Expression ExpressionReader::primary() {
  const auto& token = lexer_.peek();
  height_ = 1;
  switch (token.kind) {
    case Token::Kind::name: return name();
    case Token::Kind::integer:
    case Token::Kind::real:
    case Token::Kind::imaginary: return number();
    case Token::Kind::dots: lexer_.take(); return make(Kind::ellipsis);
    case Token::Kind::string: {
      auto text = make(Kind::string, unquoted(lexer_.text(), token));
      for (lexer_.take(); lexer_.peek().kind == Token::Kind::string; lexer_.take())
        text.text += unquoted(lexer_.text(), lexer_.peek());
      return text;
    }
    case Token::Kind::sign:
      if (token.text == "(") return bracketed(Kind::tuple, ")");
      if (token.text == "[") return bracketed(Kind::list, "]");
      if (token.text == "{") return dict();
      [[fallthrough]];
    default: lexer_.expected("an expression");
  }
}

Expression readExpression(std::string_view text, const std::string& name) {
  const Text source{name, text};
  Lexer lexer(source);
  const ValueNames none;
  auto expression = ExpressionReader(lexer, none).readTuple("");
  if (lexer.peek().kind == Token::Kind::newline) lexer.take();
  if (lexer.peek().kind != Token::Kind::end) lexer.expected("the end of the expression");
  return expression;
}

}  // namespace retrograd::fx

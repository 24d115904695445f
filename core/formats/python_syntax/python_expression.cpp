#include "core/formats/python_syntax/python_expression.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/base/memory_account.h"
#include "core/base/number_text.h"

namespace retrograd::python {
namespace {

using Kind = Expression::Kind;

/// Levels of Python's binary operators, loosest first; all of one level group from the left.
constexpr std::array<std::array<std::string_view, 7>, 7> levels{{{"==", "!=", "<=", ">=", "<", ">", ""},
                                                                 {"|", "", "", "", "", "", ""},
                                                                 {"^", "", "", "", "", "", ""},
                                                                 {"&", "", "", "", "", "", ""},
                                                                 {"<<", ">>", "", "", "", "", ""},
                                                                 {"+", "-", "", "", "", "", ""},
                                                                 {"*", "//", "/", "%", "@", "", ""}}};

/// -1 for what is not a binary operator.
int levelOf(const Token& token) {
  if (token.kind != Token::Kind::sign || std::string_view(",)=]:(").find(token.text) != std::string_view::npos)
    return -1;
  for (std::size_t level = 0; level < levels.size(); ++level)
    for (const auto sign : levels[level])
      if (!sign.empty() && token.text == sign) return static_cast<int>(level);
  return -1;
}

void setReal(Expression& expression, double real) {
  expression.kind = Kind::real;
  expression.real = real;
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
      number.kind = Kind::integer;
      number.integer = *fits;
      number.text.clear();
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
  call.kind = Kind::complex;
  call.real = part(call.items[1]);
  call.imaginary = part(call.items[2]);
  call.items.clear();
}

}  // namespace

const Expression* Expression::keyword(std::string_view name) const {
  if (kind != Kind::call) return nullptr;
  const auto found = std::find_if(items.begin() + 1, items.end(),
                                  [&](const auto& item) { return item.kind == Kind::keyword && item.text == name; });
  return found == items.end() ? nullptr : &found->items.front();
}

void ExpressionReader::enter() {
  if (++depth_ > maxDepth) fail(lexer_.text(), lexer_.peek(), "an expression nests too deeply");
}

void ExpressionReader::grow(int sibling) {
  height_ = std::max(height_, sibling) + 1;
  if (height_ > 2 * maxDepth) fail(lexer_.text(), lexer_.peek(), "an expression nests too deeply");
}

Token ExpressionReader::take() {
  const auto token = lexer_.take();
  end_ = token.offset + token.text.size();
  return token;
}

bool ExpressionReader::takeSign(std::string_view sign) {
  if (!lexer_.peek().isSign(sign)) return false;
  take();
  return true;
}

/// The bracket that closes a list, or what else could follow.
void ExpressionReader::expectClosing(std::string_view closing) {
  if (!takeSign(closing)) lexer_.expected("',' or '" + std::string(closing) + "'");
}

/// An expression that begins with the next token.
Expression ExpressionReader::begin(Kind kind) const {
  Expression expression;
  expression.kind = kind;
  expression.place = lexer_.peek().place();
  return expression;
}

Expression ExpressionReader::around(Kind kind, std::string_view text, Expression first) {
  Expression expression;
  expression.kind = kind;
  expression.text = text;
  expression.place = first.place;
  expression.items.push_back(std::move(first));
  return expression;
}

void ExpressionReader::end(Expression& expression) const { expression.size = end_ - expression.place.offset; }

Expression ExpressionReader::read() {
  enter();
  auto expression = binary(0);
  --depth_;
  return expression;
}

Expression ExpressionReader::readTuple(std::string_view closing) {
  auto first = read();
  if (!lexer_.peek().isSign(",")) return first;
  auto tuple = around(Kind::tuple, "", std::move(first));
  int tallest = height_;
  while (takeSign(",")) {
    const auto& next = lexer_.peek();
    if (next.kind == Token::Kind::newline || next.kind == Token::Kind::end || next.isSign(";") || next.isSign("=") ||
        (!closing.empty() && next.isSign(closing)))
      break;
    addItem(tuple, read(), tallest);
  }
  grow(tallest);
  end(tuple);
  return tuple;
}

void ExpressionReader::addItem(Expression& list, Expression item, int& tallest) {
  chargeReading(2 * sizeof(Expression));  // a list doubles its memory as it grows
  list.items.push_back(std::move(item));
  tallest = std::max(tallest, height_);
}

Expression ExpressionReader::binary(int loosest) {
  auto left = unary();
  for (auto level = levelOf(lexer_.peek()); level >= loosest; level = levelOf(lexer_.peek())) {
    const int leftHeight = height_;
    const auto sign = take().text;
    auto both = around(Kind::binary, sign, std::move(left));
    both.items.push_back(binary(level + 1));
    left = std::move(both);
    grow(leftHeight);
    end(left);
  }
  return left;
}

Expression ExpressionReader::unary() {
  const auto& token = lexer_.peek();
  if (!token.isSign("-") && !token.isSign("+") && !token.isSign("~")) return power();
  enter();
  auto whole = begin(Kind::unary);
  whole.text = take().text;
  auto operand = unary();
  --depth_;
  grow(0);
  if (whole.text == "-" && negate(operand)) {
    operand.place = whole.place;
    end(operand);
    return operand;
  }
  whole.items.push_back(std::move(operand));
  end(whole);
  return whole;
}

Expression ExpressionReader::power() {
  auto base = postfix();
  if (!lexer_.peek().isSign("**")) return base;
  enter();
  const int baseHeight = height_;
  take();
  auto both = around(Kind::binary, "**", std::move(base));
  both.items.push_back(unary());
  --depth_;
  grow(baseHeight);
  end(both);
  return both;
}

Expression ExpressionReader::postfix() {
  auto expression = primary();
  for (;;) {
    if (takeSign(".")) {
      if (lexer_.peek().kind != Token::Kind::name) lexer_.expected("a name after '.'");
      const auto attribute = take().text;
      if (expression.kind == Kind::path) {
        expression.text.append(1, '.').append(attribute);
      } else {
        expression = around(Kind::attribute, attribute, std::move(expression));
        grow(0);
      }
    } else if (lexer_.peek().isSign("(")) {
      expression = call(std::move(expression));
    } else if (takeSign("[")) {
      const int baseHeight = height_;
      auto item = around(Kind::item, "", std::move(expression));
      item.items.push_back(index());
      grow(baseHeight);
      expectClosing("]");
      expression = std::move(item);
    } else {
      return expression;
    }
    end(expression);
  }
}

Expression ExpressionReader::index() {
  auto first = sliceOrValue();
  if (!lexer_.peek().isSign(",")) return first;
  auto tuple = around(Kind::tuple, "", std::move(first));
  int tallest = height_;
  while (takeSign(",") && !lexer_.peek().isSign("]")) addItem(tuple, sliceOrValue(), tallest);
  grow(tallest);
  end(tuple);
  return tuple;
}

Expression ExpressionReader::sliceOrValue() {
  const auto isPart = [&] {
    return !lexer_.peek().isSign(":") && !lexer_.peek().isSign("]") && !lexer_.peek().isSign(",");
  };
  auto first = begin(Kind::none);
  height_ = 1;
  if (isPart()) {
    first = read();
    if (!lexer_.peek().isSign(":")) return first;
  }
  auto slice = around(Kind::slice, "", std::move(first));
  slice.items.resize(3);
  int tallest = height_;
  for (std::size_t i = 1; i < 3 && takeSign(":"); ++i) {
    if (isPart()) slice.items[i] = read();
    tallest = std::max(tallest, height_);
  }
  grow(tallest);
  end(slice);
  return slice;
}

Expression ExpressionReader::call(Expression callee) {
  take();
  auto call = around(Kind::call, "", std::move(callee));
  int tallest = height_;
  while (!lexer_.peek().isSign(")")) {
    addItem(call, argument(), tallest);
    if (!takeSign(",")) break;
  }
  expectClosing(")");
  grow(tallest);
  foldComplex(call);
  return call;
}

Expression ExpressionReader::argument() {
  if (lexer_.peek().kind != Token::Kind::name || !lexer_.assignmentFollows()) return read();
  auto keyword = begin(Kind::keyword);
  keyword.text = take().text;
  take();
  keyword.items.push_back(read());
  grow(0);
  end(keyword);
  return keyword;
}

Expression ExpressionReader::bracketed(Kind kind, std::string_view closing) {
  auto list = begin(kind);
  bool hasComma = false;
  int tallest = 0;
  take();
  while (!lexer_.peek().isSign(closing)) {
    addItem(list, read(), tallest);
    if (!takeSign(",")) break;
    hasComma = true;
  }
  expectClosing(closing);
  height_ = 0;
  grow(tallest);
  if (kind == Kind::tuple && list.items.size() == 1 && !hasComma) {  // plain parentheses
    auto inner = std::move(list.items.front());
    inner.place = list.place;
    list = std::move(inner);
  }
  end(list);
  return list;
}

Expression ExpressionReader::dict() {
  auto dict = begin(Kind::dict);
  int tallest = 0;
  take();
  while (!lexer_.peek().isSign("}")) {
    addItem(dict, read(), tallest);
    lexer_.expectSign(":");
    addItem(dict, read(), tallest);
    if (!takeSign(",")) break;
  }
  expectClosing("}");
  height_ = 0;
  grow(tallest);
  end(dict);
  return dict;
}

Expression ExpressionReader::number() {
  auto number = begin(Kind::integer);
  const auto token = take();
  auto text = token.text;
  end(number);
  if (token.kind == Token::Kind::integer) {
    const auto fits = numberIn<std::int64_t>(text);
    if (fits) {
      number.integer = *fits;
    } else {
      number.kind = Kind::bigInteger;
      number.text = text;
    }
    return number;
  }
  if (token.kind == Token::Kind::imaginary) text.remove_suffix(1);
  const auto real = numberIn<double>(text);
  if (!real) fail(lexer_.text(), token, "expected a number that a double can hold");
  if (token.kind == Token::Kind::real) {
    setReal(number, *real);
  } else {
    number.kind = Kind::complex;
    number.imaginary = *real;
  }
  return number;
}

Expression ExpressionReader::name() {
  auto name = begin(Kind::path);
  const auto token = lexer_.peek();
  if (const auto value = values_.find(token.text); value != values_.end()) {
    name.kind = Kind::value;
    name.integer = static_cast<std::int64_t>(value->second);
  } else if (token.text == "None") {
    name.kind = Kind::none;
  } else if (token.text == "True" || token.text == "False") {
    name.kind = Kind::boolean;
    name.integer = token.text == "True";
  } else if (token.text == "Ellipsis") {
    name.kind = Kind::ellipsis;
  } else if (token.text == "inf" || token.text == "nan") {
    setReal(name,
            token.text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN());
  } else {
    const auto path = lexer_.takePath();
    name.text = path.text;
    end_ = path.offset + path.text.size();
    end(name);
    return name;
  }
  take();
  end(name);
  return name;
}

/// Strings next to each other are one.
Expression ExpressionReader::string() {
  auto string = begin(Kind::string);
  while (lexer_.peek().kind == Token::Kind::string) {
    const auto token = take();
    string.text += unquoted(lexer_.text(), token.text, token.place());
  }
  end(string);
  return string;
}

Expression ExpressionReader::primary() {
  const auto& token = lexer_.peek();
  height_ = 1;
  switch (token.kind) {
    case Token::Kind::name: return name();
    case Token::Kind::integer:
    case Token::Kind::real:
    case Token::Kind::imaginary: return number();
    case Token::Kind::string: return string();
    case Token::Kind::dots: {
      auto ellipsis = begin(Kind::ellipsis);
      take();
      end(ellipsis);
      return ellipsis;
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

}  // namespace retrograd::python

#include "core/formats/text/text_syntax.h"

#include <charconv>
#include <string_view>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/trace/argument.h"

namespace retrograd::text {
namespace {

constexpr int maxBrackets = 64, maxChain = 64, maxFunctions = 32;

using Kind = Expression::Kind;

/// Parses the tokens of one line.
class ExpressionParser {
 public:
  ExpressionParser(const Source& source, const std::vector<Token>& tokens, std::size_t at = 0)
      : source_(source), tokens_(tokens), at_(at) {}

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool isSign(std::string_view sign, std::size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::sign && peek(ahead).text == sign;
  }
  bool take(std::string_view sign) {
    if (!isSign(sign)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) expected("'" + std::string(sign) + "'");
  }
  [[noreturn]] void expected(const std::string& what) const {
    fail(source_, peek().place, "expected " + what + ", found " + describe(peek()));
  }
  void expectEnd() const {
    if (peek().kind != Token::Kind::end) expected("the end of the line");
  }
  /// A name without dots.
  Token name(const std::string& what) {
    if (peek().kind != Token::Kind::name || peek().text.find('.') != std::string_view::npos) expected(what);
    return tokens_[at_++];
  }

  Expression expression() { return sum(); }

  /// Expressions separated by commas up to `closing` (the end of the line where it is empty); `comma` says whether one
  /// ended the list.
  std::vector<Expression> list(std::string_view closing, bool& comma) {
    std::vector<Expression> items;
    comma = false;
    const auto isClosed = [&] { return closing.empty() ? peek().kind == Token::Kind::end : isSign(closing); };
    while (!isClosed()) {
      chargeReading(sizeof(Expression) + 2 * sizeof(Argument));  // which it becomes
      items.push_back(expression());
      comma = take(",");
      if (!comma && !isClosed())
        expected("',' or " + (closing.empty() ? std::string("the end of the line") : "'" + std::string(closing) + "'"));
    }
    if (!closing.empty()) ++at_;
    return items;
  }

 private:
  /// Counts brackets on the way down, so that no text can nest deeper than the stack.
  struct Depth {
    explicit Depth(ExpressionParser& parser) : depth(parser.depth_) {
      if (++depth > maxBrackets)
        fail(parser.source_, parser.peek().place,
             "expected at most " + std::to_string(maxBrackets) + " brackets in one another");
    }
    ~Depth() { --depth; }
    int& depth;
  };

  Expression sum() {
    auto left = product();
    for (int terms = 0; isSign("+") || isSign("-"); checkChain(++terms))
      left = binary(std::move(left), &ExpressionParser::product);
    return left;
  }

  Expression product() {
    auto left = unary();
    for (int factors = 0; isSign("*") || isSign("//") || isSign("/") || isSign("%"); checkChain(++factors))
      left = binary(std::move(left), &ExpressionParser::unary);
    return left;
  }

  /// a + b + c nests as ((a + b) + c) does.
  void checkChain(int length) const {
    if (length > maxChain) fail(source_, peek().place, "expected at most " + std::to_string(maxChain) + " terms");
  }

  Expression binary(Expression left, Expression (ExpressionParser::*operand)()) {
    Expression result;
    result.kind = Kind::binary;
    result.place = left.place;
    result.text = tokens_[at_++].text;
    result.items.push_back(std::move(left));
    result.items.push_back((this->*operand)());
    const auto* begin = result.items.front().source.data();
    return finished(std::move(result), begin);
  }

  Expression unary() {
    if (!isSign("-")) return postfix();
    const Depth depth(*this);
    const auto place = peek().place;
    const auto* begin = peek().text.data();
    ++at_;
    Expression result;
    if (peek().kind == Token::Kind::integer) {  // the least integer has no positive counterpart
      result = integer("-");
    } else {
      result.kind = Kind::negative;
      result.items.push_back(unary());
    }
    result.place = place;
    return finished(std::move(result), begin);
  }

  Expression postfix() {
    auto result = atom();
    if (result.kind != Kind::name || !isSign("(")) return result;
    const Depth depth(*this);
    Expression call;
    call.kind = Kind::call;
    call.place = result.place;
    const auto* begin = result.source.data();
    call.items.reserve(4);
    call.items.push_back(std::move(result));
    ++at_;
    while (!take(")")) {
      argument(call);
      if (!take(",") && !isSign(")")) expected("',' or ')'");
    }
    return finished(std::move(call), begin);
  }

  void argument(Expression& call) {
    if (peek().kind == Token::Kind::name && isSign("=", 1)) {
      for (const auto& keyword : call.keywords)
        if (keyword == peek().text)
          fail(source_, peek().place, "expected '" + std::string(keyword) + "' to be given once");
      call.keywords.push_back(name("the name of an argument").text);
      ++at_;
    } else if (!call.keywords.empty()) {
      expected("a named argument, as all after the first named one are");
    }
    call.items.push_back(expression());
  }

  Expression atom() {
    const auto& token = peek();
    Expression result;
    result.place = token.place;
    const auto* begin = token.text.data();
    if (token.kind == Token::Kind::integer) return integer("");
    if (token.kind == Token::Kind::name) {
      result.kind = Kind::name;
      result.text = token.text;
      ++at_;
    } else if (token.kind == Token::Kind::real) {
      result.kind = Kind::real;
      const auto [end, error] = std::from_chars(begin, begin + token.text.size(), result.real);
      if (error != std::errc() || end != begin + token.text.size())
        fail(source_, token.place, "expected a number that a double can hold");
      ++at_;
    } else if (token.kind == Token::Kind::string) {
      result.kind = Kind::string;
      unquoted(source_, token.text, token.place);  // throws
      result.text = token.text;
      ++at_;
    } else if (isSign("[") || isSign("(")) {
      return bracket();
    } else {
      expected("a value");
    }
    return finished(std::move(result), begin);
  }

  Expression integer(const std::string& sign) {
    const auto& token = peek();
    Expression result;
    result.kind = Kind::integer;
    result.place = token.place;
    const auto digits = sign + std::string(token.text);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.integer);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail(source_, token.place, "expected an integer of 64 bits");
    ++at_;
    return finished(std::move(result), token.text.begin());
  }

  /// A list, a tuple, or an expression in brackets.
  Expression bracket() {
    const Depth depth(*this);
    Expression result;
    result.place = peek().place;
    const auto* begin = peek().text.data();
    const bool isList = isSign("[");
    ++at_;
    bool comma = false;
    result.items = list(isList ? "]" : ")", comma);
    result.kind = isList ? Kind::list : Kind::tuple;
    if (!isList && result.items.size() == 1 && !comma) {
      auto inner = std::move(result.items.front());
      return finished(std::move(inner), begin);
    }
    return finished(std::move(result), begin);
  }

  Expression finished(Expression expression, const char* begin) const {
    const auto& last = tokens_[at_ - 1].text;
    expression.source = std::string_view(begin, last.data() + last.size() - begin);
    return expression;
  }

  const Source& source_;
  const std::vector<Token>& tokens_;
  std::size_t at_;
  int depth_ = 0;
};

}  // namespace

/// Parses lines to functions.
class Parser {
 public:
  Parser(const Source& source, const Progress& progress) : source_(source), progress_(progress), lexer_(source) {
    advance();
  }

  std::optional<Function> next() {
    while (!body_.isFinished) (void)statement();
    std::vector<Comment> before;
    for (; more_; advance()) {
      if (line_.isComment()) {
        before.push_back(line_.comment);
        continue;
      }
      if (line_.indent != 0) fail(source_, line_.place, "expected no indentation outside of a function");
      const auto& first = line_.tokens.front();
      if (first.kind == Token::Kind::name && (first.text == "import" || first.text == "from")) continue;
      if (first.text != "def") fail(source_, first.place, "expected 'def', found " + describe(first));
      auto result = head(body_, 0);
      result.before = std::move(before);
      return result;
    }
    return std::nullopt;
  }

  Statement statement() { return statement(body_); }

 private:
  /// How far the body of a function is read.
  struct Body {
    std::string name;
    Place place;
    int outer = 0, depth = 0;
    int indent = -1;  ///< not known before the first statement
    bool isFinished = true;
  };

  void advance() {
    if (++lines_ % 4096 == 0) progress_.check();
    more_ = lexer_.next(line_);
  }

  /// Signature and the comments under it.
  Function head(Body& body, int depth) {
    if (depth >= maxFunctions)
      fail(source_, line_.place, "expected at most " + std::to_string(maxFunctions) + " functions in one another");
    Function result;
    result.place = line_.place;
    ExpressionParser parser(source_, line_.tokens, 1);
    result.name = parser.name("the name of a function").text;
    parser.expect("(");
    std::unordered_set<std::string_view> names;
    while (!parser.take(")")) {
      const auto name = parser.name("the name of a parameter");
      if (!names.insert(name.text).second)
        fail(source_, name.place, "expected a name that no other parameter has, found " + describe(name));
      result.parameters.push_back({name.text, name.place});
      if (!parser.take(",") && !parser.isSign(")")) parser.expected("',' or ')'");
    }
    parser.expect(":");
    parser.expectEnd();
    body = {result.name, result.place, line_.indent, depth, -1, false};
    for (advance(); more_ && line_.isComment(); advance()) result.head.push_back(line_.comment);
    return result;
  }

  std::shared_ptr<const Function> function(int depth) {
    Body body;
    auto result = std::make_shared<Function>(head(body, depth));
    while (!body.isFinished) result->body.push_back(statement(body));
    return result;
  }

  Statement statement(Body& body) {
    if (!more_ || (!line_.isComment() && line_.indent <= body.outer))
      fail(source_, more_ ? line_.place : body.place, "expected 'return' at the end of '" + body.name + "'");
    if (line_.isComment())
      return comment();  // before the return it belongs to the function, however far it is indented
    if (body.indent < 0) body.indent = line_.indent;
    checkIndent(body);
    auto result = statement(body.depth);
    body.isFinished = result.kind == Statement::Kind::result;
    if (!body.isFinished || !more_ || line_.isComment() || line_.indent <= body.outer) return result;
    checkIndent(body);
    fail(source_, line_.place, "expected nothing behind 'return'");
  }

  void checkIndent(const Body& body) const {
    if (line_.indent != body.indent)
      fail(source_, line_.place,
           "expected the indentation of the lines before, " + std::to_string(body.indent) + " spaces");
  }

  Statement comment() {
    Statement statement;
    statement.place = line_.place;
    statement.comment = line_.comment;
    advance();
    return statement;
  }

  Statement statement(int depth) {
    Statement result;
    result.place = line_.place;
    result.comment = line_.comment;
    const auto& first = line_.tokens.front();
    if (first.text == "def") {
      result.kind = Statement::Kind::function;
      result.function = function(depth + 1);
      return result;
    }
    ExpressionParser parser(source_, line_.tokens, first.text == "del" || first.text == "return" ? 1 : 0);
    bool comma = false;
    if (first.text == "del" || first.text == "return") {
      result.kind = first.text == "del" ? Statement::Kind::del : Statement::Kind::result;
      result.value.place = parser.peek().place;
      result.value.items = parser.list({}, comma);
      if (result.value.items.empty()) parser.expected(first.text == "del" ? "a name" : "the results, a tuple");
      if (!comma && result.value.items.size() == 1 && result.kind == Statement::Kind::result) {
        auto only = std::move(result.value.items.front());
        result.value = std::move(only);
      }
    } else {
      readOp(result, parser);
    }
    parser.expectEnd();
    advance();
    return result;
  }

  /// `targets = call`, or the call alone.
  void readOp(Statement& statement, ExpressionParser& parser) {
    statement.kind = Statement::Kind::op;
    auto left = parser.expression();
    if (parser.isSign(",")) {  // a, b = ...
      Expression tuple;
      tuple.place = left.place;
      tuple.items.push_back(std::move(left));
      while (parser.take(","))
        if (!parser.isSign("=")) tuple.items.push_back(parser.expression());
      left = std::move(tuple);
    }
    if (parser.take("=")) {
      statement.targets.push_back(std::move(left));
      statement.value = parser.expression();
    } else {
      statement.value = std::move(left);
    }
    if (statement.value.kind != Kind::call)
      fail(source_, statement.value.place, "expected an op that is called, such as torch.ops.aten.sin.default(x)");
  }

  const Source& source_;
  const Progress& progress_;
  Lexer lexer_;
  Line line_;
  bool more_ = false;
  std::size_t lines_ = 0;
  Body body_;  ///< of the function that is read now
};

FunctionReader::FunctionReader(const Source& source, const Progress& progress)
    : parser_(std::make_unique<Parser>(source, progress)) {}
FunctionReader::~FunctionReader() = default;
std::optional<Function> FunctionReader::next() { return parser_->next(); }
Statement FunctionReader::statement() { return parser_->statement(); }

Expression parseLiteral(const Source& source, std::string_view text, Place place) {
  const Source inner{source.name, text};
  Line line;
  try {
    Lexer lexer(inner);
    if (!lexer.next(line) || line.isComment()) throw Error(ErrorCode::badInput, "expected a value");
    ExpressionParser parser(inner, line.tokens);
    auto result = parser.expression();
    parser.expectEnd();
    if (lexer.next(line)) throw Error(ErrorCode::badInput, "expected one value");
    return result;
  } catch (const Error& e) {
    fail(source, place, e.message());
  }
}

}  // namespace retrograd::text

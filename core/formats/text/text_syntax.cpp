#include "core/formats/text/text_syntax.h"

#include <unordered_set>

#include "core/base/error.h"

namespace retrograd::text {
namespace {

constexpr int maxFunctions = 32;

using Kind = Expression::Kind;
using python::Token;

const python::ValueNames noValues;  // which names are values is not known while lines are parsed

}  // namespace

/// Parses the statements of functions.
class Parser {
 public:
  Parser(const Source& source, const Progress& progress)
      : source_(source), progress_(progress), lexer_(source), expressions_(lexer_, noValues) {}

  std::optional<Function> next() {
    while (!body_.isFinished) (void)statement();
    std::vector<Comment> before;
    for (;;) {
      while (isComment()) before.push_back(takeComment());
      const auto first = lexer_.peek();
      if (first.kind == Token::Kind::end) return std::nullopt;
      if (first.column != 0) fail(source_, first, "expected no indentation outside of a function");
      if (first.isName("import") || first.isName("from")) {
        while (lexer_.peek().kind != Token::Kind::newline) lexer_.take();
        endLine();
        continue;
      }
      if (!first.isName("def")) fail(source_, first, "expected 'def', found " + describe(first));
      auto result = head(body_, 0);
      result.before = std::move(before);
      return result;
    }
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

  /// Whether a comment on a line of its own is next.
  bool isComment() const { return comments_ < lexer_.peek().commentsEnd; }
  bool isMore() const { return isComment() || lexer_.peek().kind != Token::Kind::end; }

  Comment takeComment() {
    countLine();
    return lexer_.comments()[comments_++];
  }

  void countLine() {
    constexpr std::size_t often = 4096;
    if (++lines_ % often != 0) return;
    progress_.check();
    comments_ -= lexer_.forgetComments(comments_);
  }

  /// Takes the end of the line; the first comment in it.
  Comment endLine() {
    const auto& end = lexer_.peek();
    if (end.kind != Token::Kind::newline) lexer_.expected("the end of the line");
    Comment comment;
    for (; comments_ < end.commentsEnd; ++comments_)
      if (comment.text.empty()) comment = lexer_.comments()[comments_];
    lexer_.take();
    countLine();
    return comment;
  }

  /// A name without dots.
  Token name(const std::string& what) {
    if (lexer_.peek().kind != Token::Kind::name || lexer_.following().starts_with('.')) lexer_.expected(what);
    return lexer_.take();
  }

  /// Signature and the comments under it.
  Function head(Body& body, int depth) {
    const auto def = lexer_.take();
    if (depth >= maxFunctions)
      fail(source_, def, "expected at most " + std::to_string(maxFunctions) + " functions in one another");
    Function result;
    result.place = def.place();
    result.name = name("the name of a function").text;
    lexer_.expectSign("(");
    std::unordered_set<std::string_view> names;
    while (!lexer_.takeSign(")")) {
      const auto parameter = name("the name of a parameter");
      if (!names.insert(parameter.text).second)
        fail(source_, parameter, "expected a name that no other parameter has, found " + describe(parameter));
      result.parameters.push_back({parameter.text, parameter.place()});
      if (!lexer_.takeSign(",") && !lexer_.peek().isSign(")")) lexer_.expected("',' or ')'");
    }
    lexer_.expectSign(":");
    endLine();
    body = {result.name, result.place, def.column, depth, -1, false};
    while (isComment()) result.head.push_back(takeComment());
    return result;
  }

  std::shared_ptr<const Function> function(int depth) {
    Body body;
    auto result = std::make_shared<Function>(head(body, depth));
    while (!body.isFinished) result->body.push_back(statement(body));
    return result;
  }

  bool isBehind(const Body& body) const { return !isMore() || lexer_.peek().column <= body.outer; }

  Statement statement(Body& body) {
    if (isComment()) return comment();  // before the return it belongs to the function, however far it is indented
    if (isBehind(body))
      fail(source_, isMore() ? lexer_.peek().place() : body.place,
           "expected 'return' at the end of '" + body.name + "'");
    if (body.indent < 0) body.indent = lexer_.peek().column;
    checkIndent(body);
    auto result = statement(body.depth);
    body.isFinished = result.kind == Statement::Kind::result;
    if (!body.isFinished || isComment() || isBehind(body)) return result;
    checkIndent(body);
    fail(source_, lexer_.peek(), "expected nothing behind 'return'");
  }

  void checkIndent(const Body& body) const {
    if (lexer_.peek().column != body.indent)
      fail(source_, lexer_.peek(),
           "expected the indentation of the lines before, " + std::to_string(body.indent) + " spaces");
  }

  Statement comment() {
    Statement statement;
    statement.comment = takeComment();
    statement.place = statement.comment.place;
    return statement;
  }

  Statement statement(int depth) {
    const auto first = lexer_.peek();
    Statement result;
    result.place = first.place();
    if (first.isName("def")) {
      result.kind = Statement::Kind::function;
      result.function = function(depth + 1);
      return result;
    }
    if (first.isName("del") || first.isName("return")) {
      lexer_.take();
      result.kind = first.isName("del") ? Statement::Kind::del : Statement::Kind::result;
      if (lexer_.peek().kind == Token::Kind::newline)
        lexer_.expected(first.isName("del") ? "a name" : "the results, a tuple");
      result.value = expressions_.readTuple("");
    } else {
      readOp(result);
    }
    result.comment = endLine();
    return result;
  }

  /// `targets = call`, or the call alone.
  void readOp(Statement& statement) {
    statement.kind = Statement::Kind::op;
    auto left = expressions_.readTuple("");
    if (lexer_.takeSign("=")) {
      statement.targets.push_back(std::move(left));
      statement.value = expressions_.read();
    } else {
      statement.value = std::move(left);
    }
    if (!statement.value.is(Kind::call))
      fail(source_, statement.value.place, "expected an op that is called, such as torch.ops.aten.sin.default(x)");
  }

  const Source& source_;
  const Progress& progress_;
  python::Lexer lexer_;
  python::ExpressionReader expressions_;
  std::uint32_t comments_ = 0;  ///< of the lexer's comments, those that were taken
  std::size_t lines_ = 0;
  Body body_;  ///< of the function that is read now
};

FunctionReader::FunctionReader(const Source& source, const Progress& progress)
    : parser_(std::make_unique<Parser>(source, progress)) {}
FunctionReader::~FunctionReader() = default;
std::optional<Function> FunctionReader::next() { return parser_->next(); }
Statement FunctionReader::statement() { return parser_->statement(); }

Expression readRemark(const Source& source, const Place& place, std::size_t size) {
  const Source upToHere{source.name, source.text.substr(0, place.offset + size), source.hasBytes};
  python::Lexer lexer(upToHere, place);
  auto result = python::ExpressionReader(lexer, noValues).read();
  if (lexer.peek().kind == Token::Kind::newline) lexer.take();
  if (lexer.peek().kind != Token::Kind::end) lexer.expected("the end of the remark");
  return result;
}

}  // namespace retrograd::text

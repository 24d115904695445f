#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/formats/fx/fx_class.h"
#include "core/formats/fx/fx_reader.h"

namespace retrograd::fx {
namespace {

using Kind = Expression::Kind;

constexpr std::array<std::string_view, 13> inPlaceSigns{
    "+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", "@=", "**=", "<<=", ">>="};

bool isInPlaceSign(const Token& token) {
  if (token.kind != Token::Kind::sign) return false;
  for (const auto sign : inPlaceSigns) {
    if (token.text == sign) return true;
  }
  return false;
}

/// Whether a comment says where nodes come from; others ("graph id: 3") are passed over.
bool isSource(std::string_view comment) {
  for (const auto* word :
       {"File: ", "No stacktrace found", "Annotation:", "ac_graph_id:", "recompute:", "Backward of forward node:"}) {
    if (comment.find(word) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

void ClassReader::readComments(const Token& first) {
  for (auto i = first.commentsBegin; i < first.commentsEnd; ++i) {
    const auto text = python::trimmed(lexer_.comments()[i].text);
    if (!isSource(text)) continue;
    const auto [known, isNew] = sources_.try_emplace(text, static_cast<std::uint32_t>(graph_.sources.size()));
    source_ = known->second;
    if (!isNew) continue;
    graph_.sources.push_back(readSource(text));
    const auto& source = graph_.sources.back();
    graph_.hasBackwardMarks |= source.backward;
    graph_.hasCheckpointTags |= source.checkpoint.has_value() || !source.policy.empty();
  }
}

void ClassReader::readLine() {
  while (lexer_.peek().kind != Token::Kind::newline && lexer_.peek().kind != Token::Kind::end) {
    readStatement();
    if (!lexer_.takeSign(";")) break;
  }
  expectLineEnd("';' or the end of the line");
}

void ClassReader::readStatement() {
  if (lexer_.peek().kind != Token::Kind::name) lexer_.expected("a statement");
  if (lexer_.takeName("pass")) return;
  const auto next = lexer_.following();
  if (next.starts_with(",")) return readFlattened();
  const bool isAnnotated = next.starts_with(":"), isAssigned = next.starts_with("=") && !next.starts_with("==");
  if (!isAnnotated && !isAssigned) return readInPlace();
  const auto name = lexer_.take();
  lexer_.take();
  isAnnotated ? readAnnotated(name) : readAssigned(name);
}

/// NAME: "TYPE" = RHS, or an input that is declared
void ClassReader::readAnnotated(const Token& name) {
  const auto type = readAnnotation();
  if (lexer_.takeSign("=")) return addNode(name, type, expressions_.readTuple(""));
  if (!graph_.nodes.empty()) fail(lexer_.text(), name, fmt::format("'{}' has no value", name.text));
  const auto descriptor =
      lexer_.peek().kind == Token::Kind::newline ? lexer_.commentBefore(lexer_.peek()) : std::string_view();
  if (!declared_.try_emplace(name.text, Declared{type, descriptorOf(descriptor), name.line}).second) {
    fail(lexer_.text(), name, fmt::format("'{}' is declared twice", name.text));
  }
}

/// NAME = RHS, or `a = b = None`: the graph does not need them any more, which changes nothing
void ClassReader::readAssigned(const Token& name) {
  auto right = expressions_.readTuple("");
  if (lexer_.peek().isSign("=") || (right.is(Kind::none) && values_.contains(name.text))) {
    if (!values_.contains(name.text))
      fail(lexer_.text(), name, fmt::format("'{}' is released and was never defined", name.text));
    while (lexer_.takeSign("=")) {
      if (!right.is(Kind::value)) lexer_.expected("'None'");
      right = expressions_.read();
    }
    if (!right.is(Kind::none)) lexer_.expected("'None' before this");
    return;
  }
  if (!renameInput(name, right)) addNode(name, noIndex, std::move(right));
}

/// `l_x_ = L_x_`: an input by the name that the graph uses
bool ClassReader::renameInput(const Token& name, const Expression& right) {
  if (!right.is(Kind::value) || static_cast<std::size_t>(right.integer) >= graph_.inputs.size()) return false;
  auto& input = graph_.inputs[right.integer];
  if (!input.target.empty() || !graph_.nodes.empty()) return false;
  define(name, static_cast<std::size_t>(right.integer));
  input.target = std::exchange(input.name, std::string(name.text));
  return true;
}

/// a, b, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
void ClassReader::readFlattened() {
  const auto first = lexer_.peek();
  if (!graph_.nodes.empty() || !graph_.groups.empty())
    fail(lexer_.text(), first, "inputs are unpacked after the first op");
  std::vector<Token> names;
  while (lexer_.peek().kind == Token::Kind::name) {
    names.push_back(lexer_.take());
    if (!lexer_.takeSign(",")) break;
  }
  lexer_.expectSign("=");
  const auto right = expressions_.readTuple("");
  if (!right.isCallOf("fx_pytree.tree_flatten_spec"))
    fail(lexer_.text(), first, "only inputs are unpacked, by fx_pytree.tree_flatten_spec");
  for (auto& group : std::exchange(graph_.inputs, {})) graph_.groups.push_back(std::move(group.name));
  values_.clear();
  for (const auto& name : names) {
    Input input;
    input.name = name.text;
    input.line = name.line;
    const auto declared = declared_.find(name.text);
    input.dropped = declared == declared_.end() && !declared_.empty();
    if (declared != declared_.end()) {
      input.type = declared->second.type;
      input.descriptor = std::move(declared->second.descriptor);
      input.line = declared->second.line;
    }
    graph_.inputs.push_back(std::move(input));
    define(name, graph_.inputs.size() - 1);
  }
  for (const auto& [name, declared] : declared_) {
    if (!values_.contains(name))
      fail(lexer_.text(), first, fmt::format("the input '{}' is declared and not unpacked", name));
  }
  declared_.clear();
}

/// `x += y;  iadd = x`, or `x[i] = y;  setitem = x`
void ClassReader::readInPlace() {
  const auto begin = lexer_.peek();
  Expression write;
  write.kind = Kind::inPlace;
  auto left = expressions_.read();
  if (isInPlaceSign(lexer_.peek())) {
    write.text = lexer_.take().text;
    write.items.push_back(std::move(left));
  } else {
    if (!left.is(Kind::item) || !lexer_.takeSign("="))
      fail(lexer_.text(), begin, "expected 'NAME = ...', an op in place or 'return'");
    write.text = "[]=";
    write.items = std::move(left.items);
  }
  if (!write.items.front().is(Kind::value))
    fail(lexer_.text(), begin, fmt::format("writes to something other than a value: {}", describe(begin)));
  write.items.push_back(expressions_.readTuple(""));
  if (!lexer_.takeSign(";") || lexer_.peek().kind != Token::Kind::name)
    lexer_.expected("'; NAME = ...', the result of the op in place");
  const auto name = lexer_.take();
  const auto type = lexer_.takeSign(":") ? readAnnotation() : noIndex;
  lexer_.expectSign("=");
  const auto result = expressions_.read();
  if (!result.is(Kind::value) || result.integer != write.items.front().integer)
    fail(lexer_.text(), name, "the result of an op in place is what it writes to");
  addNode(name, type, std::move(write));
}

void ClassReader::addNode(const Token& name, std::uint32_t type, Expression call) {
  define(name, graph_.valueCount());
  graph_.nodes.push_back({std::string(name.text), type, source_, std::move(call), name.line});
}

void ClassReader::readReturn() {
  const auto& token = lexer_.peek();
  if (token.isName("pytree") && lexer_.following().starts_with(".")) {
    for (const auto* word : {"pytree", ".", "tree_unflatten", "("}) {
      if (!lexer_.takeName(word) && !lexer_.takeSign(word)) lexer_.expected(fmt::format("'{}'", word));
    }
    lexer_.expectSign("[");
    readOutputs("]", Graph::Return::pytree);
    lexer_.expectSign(",");
    expressions_.readTuple(")");
    lexer_.expectSign(")");
  } else if (lexer_.takeSign("(")) {
    readOutputs(")", Graph::Return::tuple);
  } else if (lexer_.takeSign("[")) {
    readOutputs("]", Graph::Return::list);
  } else {
    graph_.returns = Graph::Return::single;
    const int line = token.line;
    graph_.outputs.push_back({expressions_.readTuple(""), {}, line});
    describeLastOutput();
    if (graph_.outputs.back().value.is(Kind::tuple)) {  // return a, b
      graph_.returns = Graph::Return::tuple;
      auto items = std::move(graph_.outputs.back().value.items);
      graph_.outputs.clear();
      for (auto& item : items) graph_.outputs.push_back({std::move(item), {}, line});
    }
  }
  expectLineEnd();
}

void ClassReader::readOutputs(std::string_view closing, Graph::Return form) {
  graph_.returns = form;
  bool hasComma = false;
  while (!lexer_.peek().isSign(closing)) {
    const int line = lexer_.peek().line;
    graph_.outputs.push_back({expressions_.read(), {}, line});
    describeLastOutput();
    if (!lexer_.takeSign(",")) break;
    hasComma = true;
    describeLastOutput();
  }
  lexer_.expectSign(closing);
  if (form == Graph::Return::tuple && !hasComma && graph_.outputs.size() == 1) graph_.returns = Graph::Return::single;
}

void ClassReader::describeLastOutput() {
  const auto comment = lexer_.commentBefore(lexer_.peek());
  if (!comment.empty()) graph_.outputs.back().descriptor = descriptorOf(comment);
}

/// A quoted type, or an expression ("torch.Tensor").
std::uint32_t ClassReader::readAnnotation() {
  std::string_view text;
  if (lexer_.peek().kind == Token::Kind::string) {
    const auto token = lexer_.take();
    text = token.text.substr(1, token.text.size() - 2);
  } else {
    const auto begin = lexer_.peek().offset;
    expressions_.read();
    text = lexer_.text().text.substr(begin, lexer_.peek().offset - begin);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  }
  const auto [known, isNew] = types_.try_emplace(text, static_cast<std::uint32_t>(graph_.types.size()));
  if (isNew) graph_.types.push_back(readType(text));
  return known->second;
}

Descriptor ClassReader::descriptorOf(std::string_view comment) {
  Descriptor descriptor;
  descriptor.text = comment;
  if (comment.empty()) return descriptor;
  try {
    descriptor.expression = readExpression(comment, "descriptor");
  } catch (const Error&) {
    return descriptor;  // some other comment
  }
  graph_.hasDescriptors |= descriptor.kind().find("AOT") != std::string_view::npos;
  return descriptor;
}

void ClassReader::define(const Token& name, std::size_t value) {
  if (!values_.try_emplace(name.text, value).second)
    fail(lexer_.text(), name, fmt::format("'{}' is defined twice", name.text));
}

}  // namespace retrograd::fx

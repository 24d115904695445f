#include "core/formats/fx/fx_class.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/memory_account.h"

namespace retrograd::fx {

ClassReader::ClassReader(Lexer& lexer, Graph& graph, int depth)
    : lexer_(lexer), graph_(graph), expressions_(lexer, values_), depth_(depth) {
  if (depth > maxDepth) fail(lexer.text(), lexer.peek(), "classes nest too deeply");
}

void ClassReader::read() {
  const int column = lexer_.peek().column;
  readHead();
  bool hasForward = false;
  while (lexer_.peek().kind != Token::Kind::end && lexer_.peek().column > column) {
    const auto token = lexer_.peek();
    if (token.isName("class")) {
      graph_.bodies.emplace_back();
      ClassReader(lexer_, graph_.bodies.back(), depth_ + 1).read();
      continue;
    }
    if (!lexer_.takeName("def")) lexer_.expected("'def' or 'class'");
    const auto function = lexer_.expectName("the name of a function");
    if (function == "forward") {
      if (hasForward) fail(lexer_.text(), token, "a second 'forward' in one class");
      hasForward = true;
      readForward(token.column);
    } else {
      readOtherFunction(function, token.column);
    }
  }
  if (!hasForward) fail(lexer_.text(), lexer_.peek(), fmt::format("the class '{}' has no 'forward'", graph_.className));
  chargeReading(values_.size() * 64 + graph_.nodes.size() * sizeof(Node));
}

/// class NAME(torch.nn.Module):
void ClassReader::readHead() {
  if (!lexer_.takeName("class")) lexer_.expected("'class'");
  if (lexer_.takeSign("<")) {  // class <lambda>(torch.nn.Module):
    graph_.className = fmt::format("<{}>", lexer_.expectName("a name"));
    lexer_.expectSign(">");
  } else {
    graph_.className = lexer_.expectName("the name of a class");
  }
  lexer_.expectSign("(");
  expressions_.readTuple(")");
  lexer_.expectSign(")");
  lexer_.expectSign(":");
  expectLineEnd();
}

void ClassReader::expectLineEnd(const char* what) {
  if (lexer_.peek().kind == Token::Kind::end) return;
  if (lexer_.peek().kind != Token::Kind::newline) lexer_.expected(what);
  lexer_.take();
}

void ClassReader::skipLine() {
  while (lexer_.peek().kind != Token::Kind::newline && lexer_.peek().kind != Token::Kind::end) lexer_.take();
  expectLineEnd();
}

/// `__init__` and what else a class may have: constants are noted, the rest is passed over.
void ClassReader::readOtherFunction(std::string_view function, int column) {
  skipLine();
  while (lexer_.peek().kind != Token::Kind::end && lexer_.peek().column > column) {
    if (function == "__init__") {
      readConstant();
    } else {
      skipLine();
    }
  }
}

/// self.NAME = TEXT, or self.register_buffer('NAME', TEXT)
void ClassReader::readConstant() {
  const auto begin = lexer_.peek();
  std::string name;
  if (lexer_.takeName("self") && lexer_.takeSign(".")) {
    name = lexer_.expectName("a name after 'self.'");
    if (name == "register_buffer" && lexer_.takeSign("(") && lexer_.peek().kind == Token::Kind::string) {
      const auto string = lexer_.take();
      name = python::unquoted(lexer_.text(), string.text, string.place());
      if (!lexer_.takeSign(",")) name.clear();
    } else if (!lexer_.takeSign("=")) {
      name.clear();
    }
  }
  const auto from = lexer_.peek();
  auto end = from.offset;
  std::string_view last;
  while (lexer_.peek().kind != Token::Kind::newline && lexer_.peek().kind != Token::Kind::end) {
    last = lexer_.peek().text;
    end = lexer_.peek().offset + last.size();
    lexer_.take();
  }
  expectLineEnd();
  if (name.empty()) return;
  const auto all = lexer_.text().text.substr(begin.offset, end - begin.offset);
  if (all.starts_with("self.register_buffer") && last == ")") --end;
  graph_.constants.push_back(
      {name, std::string(lexer_.text().text.substr(from.offset, end - from.offset)), begin.line});
}

void ClassReader::readForward(int column) {
  readParameters();
  if (lexer_.takeSign("->")) expressions_.read();
  lexer_.expectSign(":");
  expectLineEnd();
  bool hasReturn = false;
  while (lexer_.peek().kind != Token::Kind::end && lexer_.peek().column > column) {
    if (hasReturn) fail(lexer_.text(), lexer_.peek(), "a statement after 'return'");
    readComments(lexer_.peek());
    if (lexer_.takeName("return")) {
      hasReturn = true;
      readReturn();
    } else {
      readLine();
    }
  }
  if (!declared_.empty()) {
    fail(lexer_.text(), lexer_.peek(),
         fmt::format("the inputs of '{}' are declared and never unpacked: the text is not whole", graph_.className));
  }
  if (!hasReturn)
    fail(lexer_.text(), lexer_.peek(),
         fmt::format("'forward' of '{}' has no 'return': the text is not whole", graph_.className));
}

/// (self, NAME: "TYPE",  # descriptor
void ClassReader::readParameters() {
  lexer_.expectSign("(");
  if (!lexer_.takeName("self")) lexer_.expected("'self'");
  while (lexer_.takeSign(",")) {
    describeLastInput();
    if (lexer_.peek().isSign(")")) break;
    readInput();
  }
  describeLastInput();
  lexer_.expectSign(")");
}

void ClassReader::readInput() {
  if (!lexer_.takeSign("*")) lexer_.takeSign("**");
  const auto name = lexer_.peek();
  Input input;
  input.line = name.line;
  input.name = lexer_.expectName("the name of an input");
  if (lexer_.takeSign(":")) input.type = readAnnotation();
  if (lexer_.takeSign("=")) expressions_.read();
  graph_.inputs.push_back(std::move(input));
  define(name, graph_.inputs.size() - 1);
}

/// A descriptor is behind the comma, so it is met before the next token.
void ClassReader::describeLastInput() {
  const auto comment = lexer_.commentBefore(lexer_.peek());
  if (!comment.empty() && !graph_.inputs.empty()) graph_.inputs.back().descriptor = descriptorOf(comment);
}

}  // namespace retrograd::fx

#include "core/formats/fx/fx_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/formats/fx/fx_class.h"

namespace retrograd::fx {

Graph readGraph(std::string_view text, const std::string& name) {
  const Text source{name, text};
  Lexer lexer(source);
  Graph graph;
  ClassReader(lexer, graph).read();
  if (lexer.peek().kind != Token::Kind::end) lexer.expected("the end of the graph");
  return graph;
}

namespace {

constexpr std::string_view reproClass = "class Repro(torch.nn.Module):";

/// Where a line that begins with `word` starts, from `from` on; npos where there is none.
std::size_t lineWith(std::string_view text, std::string_view word, std::size_t from = 0) {
  for (auto at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return at;
  }
  return std::string_view::npos;
}

/// "s23 = 2" in a line of its own, and the version in a comment.
void readPreface(std::string_view preface, Repro& repro) {
  while (!preface.empty()) {
    const auto end = std::min(preface.find('\n'), preface.size());
    const auto line = preface.substr(0, end);
    preface.remove_prefix(std::min(end + 1, preface.size()));
    constexpr std::string_view version = "# torch version: ";
    if (line.starts_with(version)) repro.torchVersion = line.substr(version.size());
    const auto assignment = line.find(" = ");
    if (assignment == std::string_view::npos || !line.starts_with('s')) continue;
    const auto name = line.substr(0, assignment);
    const auto value = numberIn<std::int64_t>(line.substr(assignment + 3));
    if (value && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos)
      repro.sizes.emplace(name, *value);
  }
}

/// A statement: `TARGET = EXPRESSION` or `EXPRESSION`, then the end of its line.
Statement readPlainStatement(Lexer& lexer, const ValueNames& none) {
  Statement statement;
  statement.line = lexer.peek().line;
  ExpressionReader reader(lexer, none);
  statement.expression = reader.readTuple("");
  if (lexer.takeSign("=")) {
    if (!statement.expression.is(Expression::Kind::path)) lexer.expected("a name to assign to before '='");
    statement.target = std::move(statement.expression.text);
    statement.expression = reader.readTuple("");
  }
  statement.comment = lexer.commentBefore(lexer.peek());
  if (lexer.takeSign(";")) return statement;
  if (lexer.peek().kind == Token::Kind::end) return statement;
  if (lexer.peek().kind != Token::Kind::newline) lexer.expected("the end of the line");
  lexer.take();
  return statement;
}

/// def load_args(reader): with its statements, and `load_args._version = 0` behind it.
void readLoadArgs(const Text& text, std::size_t at, Repro& repro) {
  Lexer lexer(text, at);
  const ValueNames none;
  for (const auto* word : {"def", "load_args"}) {
    if (!lexer.takeName(word)) lexer.expected(fmt::format("'{}'", word));
  }
  ExpressionReader(lexer, none).read();  // (reader)
  lexer.expectSign(":");
  if (lexer.peek().kind != Token::Kind::newline) lexer.expected("the end of the line");
  lexer.take();
  while (lexer.peek().kind != Token::Kind::end && lexer.peek().column > 0) {
    if (lexer.takeName("pass")) continue;
    if (lexer.peek().kind == Token::Kind::newline) {
      lexer.take();
      continue;
    }
    repro.loadArgs.push_back(readPlainStatement(lexer, none));
  }
  if (lexer.peek().isName("load_args")) repro.loadArgs.push_back(readPlainStatement(lexer, none));
}

void readRuns(const Text& text, std::size_t from, Repro& repro) {
  constexpr std::string_view call = "run_repro(";
  for (auto at = text.text.find(call, from); at != std::string_view::npos; at = text.text.find(call, at + 1)) {
    const auto lineStart = text.text.rfind('\n', at) + 1;
    if (text.text.substr(lineStart, at - lineStart).find('#') != std::string_view::npos) continue;
    Lexer lexer(text, at);
    const ValueNames none;
    repro.runs.push_back(ExpressionReader(lexer, none).read());
  }
}

}  // namespace

bool looksLikeRepro(std::string_view text) { return lineWith(text, reproClass) != std::string_view::npos; }

Repro readRepro(std::string_view text, const std::string& name) {
  const auto at = lineWith(text, reproClass);
  if (at == std::string_view::npos)
    throw Error(ErrorCode::badInput,
                fmt::format("not a repro script of torch.compile: it has no line '{}'", reproClass), name);
  Repro repro;
  readPreface(text.substr(0, at), repro);
  const Text source{name, text};
  Lexer lexer(source, at);
  ClassReader(lexer, repro.graph).read();
  const auto end = lexer.peek().offset;
  if (const auto loading = lineWith(text, "def load_args(", end); loading != std::string_view::npos)
    readLoadArgs(source, loading, repro);
  readRuns(source, end, repro);
  return repro;
}

}  // namespace retrograd::fx

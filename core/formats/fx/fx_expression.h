#pragma once
#include <string_view>
#include <unordered_map>

#include "core/formats/fx/fx_graph.h"
#include "core/formats/fx/fx_tokens.h"

namespace retrograd::fx {

/// Which names are values of the graph that is read, and their indices. Points into the text.
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
  Expression binary(int level);
  Expression unary();
  Expression power();
  Expression postfix();
  Expression primary();
  Expression number();
  Expression name();
  Expression bracketed(Expression::Kind kind, std::string_view closing);
  Expression dict();
  Expression call(Expression callee);
  Expression index();
  Expression sliceOrValue();

  Lexer& lexer_;
  const ValueNames& values_;
  int depth_ = 0;
  int height_ = 0;  ///< of the expression read last: a chain "a.b.c" is high though nothing is nested
};

}  // namespace retrograd::fx

#pragma once
// Working state of the reader of graph text; only fx_*.cpp include this.
#include <string_view>
#include <unordered_map>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::fx {

using python::ExpressionReader;
using python::Lexer;
using python::Text;
using python::Token;
using python::ValueNames;

/// Reads `class NAME(torch.nn.Module):` with what is indented below it.
class ClassReader {
 public:
  static constexpr int maxDepth = 60;
  ClassReader(Lexer& lexer, Graph& graph, int depth = 0);
  void read();

 private:
  // fx_class.cpp: the class and the head of forward()
  void readHead();
  void expectLineEnd(const char* what = "the end of the line");
  void skipLine();
  void readOtherFunction(std::string_view function, int column);
  void readConstant();
  void readForward(int column);
  void readParameters();
  void readInput();
  void describeLastInput();

  // fx_statements.cpp: the body of forward()
  void readComments(const Token& first);
  void readLine();
  void readStatement();
  void readAnnotated(const Token& name);
  void readAssigned(const Token& name);
  void readFlattened();
  void readInPlace();
  void addNode(const Token& name, std::uint32_t type, Expression call);
  bool renameInput(const Token& name, const Expression& right);
  void readReturn();
  void readOutputs(std::string_view closing, Graph::Return form);
  void describeLastOutput();
  std::uint32_t readAnnotation();
  Descriptor descriptorOf(std::string_view comment);
  void define(const Token& name, std::size_t value);

  Lexer& lexer_;
  Graph& graph_;
  ValueNames values_;
  ExpressionReader expressions_;
  int depth_;
  std::unordered_map<std::string_view, std::uint32_t> types_, sources_;
  struct Declared {
    std::uint32_t type = noIndex;
    Descriptor descriptor;
    int line = 0;
  };
  std::unordered_map<std::string_view, Declared>
      declared_;  ///< inputs named in lines of their own, before they are unpacked
  std::uint32_t source_ = noIndex;
};

}  // namespace retrograd::fx

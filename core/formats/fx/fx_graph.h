#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/tensor_meta.h"
#include "core/formats/python_syntax/python_expression.h"

namespace retrograd::fx {

using python::Expression;
using python::forEachValue;
using python::toText;

/// NAME of `self.NAME`, also as `getattr(self.a, "0")` is written ("a.0"); nullopt for anything else.
std::optional<std::string> ownAttribute(const Expression& expression);

// Expressions that no text has.
Expression leaf(Expression::Kind kind, std::string text = {}, std::int64_t integer = 0);
Expression with(Expression::Kind kind, std::string text, std::vector<Expression> items);
Expression path(std::string text);
Expression valueAt(std::int64_t value);
Expression keyword(std::string name, Expression value);
Expression callOf(std::string path, std::vector<Expression> arguments);
/// Each value below the expression becomes the one that `moved` has for it.
void moveValues(Expression& expression, const std::vector<std::size_t>& moved);

/// What an annotation says a value is: "f32[2, s0][s0, 1]cpu", "Sym(8*s13)", "DTensor(...)", a class.
struct Type {
  enum class Kind : std::uint8_t { none, tensor, number, dtensor, other };
  Kind kind = Kind::none;
  std::string text;                ///< as written, without quotes
  DType dtype = DType::f32;        ///< tensor
  std::vector<std::string> sizes;  ///< tensor: numbers or expressions over size symbols
  std::vector<std::string> strides;
  bool hasStrides = false;
  std::string device;      ///< "cpu", "cuda:0"; empty where it is not written
  std::string expression;  ///< number: "8*s13"
};

/// Reads the content of an annotation. An unknown form is of kind other, never an error.
Type readType(std::string_view text);

/// A comment line that holds for the nodes after it: where in the Python program they come from, and how checkpointing
/// treats them.
struct Source {
  std::string text;                  ///< as written, without '#'
  std::string file, function, code;  ///< empty where there is no stack trace
  int line = 0;
  bool backward = false;                   ///< "Backward of forward node:"
  std::optional<std::int64_t> checkpoint;  ///< ac_graph_id
  std::string policy;                      ///< "MUST_SAVE", "PREFER_RECOMPUTE"
  std::string annotation;                  ///< "{...}" of torch.fx.traceback.annotate
};
Source readSource(std::string_view comment);

/// A descriptor of an input or output, as PyTorch 2.9 and later writes behind it:
/// "GradAOTOutput(grad_of=PlainAOTInput(idx=1))".
struct Descriptor {
  std::string text;
  std::optional<Expression> expression;  ///< where the comment is an expression

  /// "GradAOTOutput"; empty where there is none.
  std::string_view kind() const;
  /// idx of PlainAOTInput(idx=..) or PlainAOTOutput, of the descriptor itself or of one nested in it; nullopt where
  /// there is none.
  std::optional<std::int64_t> plainIndex() const;
};

inline constexpr std::uint32_t noIndex = 0xffffffff;

struct Input {
  std::string name;    ///< in the graph: "l_x_", "primals_1"
  std::string target;  ///< of the parameter of forward(), where it has another: "L_x_"
  std::uint32_t type = noIndex;
  Descriptor descriptor;
  bool dropped = false;  ///< named and never defined: a size of a DTensor that nobody uses ("primals_2  ,")
  int line = 0;
};

struct Node {
  std::string name;
  std::uint32_t type = noIndex;    ///< into Graph::types
  std::uint32_t source = noIndex;  ///< into Graph::sources
  Expression call;                 ///< the right-hand side
  int line = 0;                    ///< in the text
};

struct Output {
  Expression value;
  Descriptor descriptor;
  int line = 0;
};

/// `self.NAME = TEXT` in `__init__`, or `self.register_buffer('NAME', TEXT)`: text as written, not read further.
struct Constant {
  std::string name, text;
  int line = 0;
};

/// A graph as torch.fx prints it.
struct Graph {
  enum class Return : std::uint8_t { single, tuple, list, pytree };

  std::string className;            ///< "inner_f", "joint_helper", "GraphModule", "Repro"
  std::vector<std::string> groups;  ///< parameters of forward() that are unpacked to the inputs: "primals", "tangents"
  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::vector<Output> outputs;
  Return returns = Return::tuple;
  std::vector<Type> types;      ///< each text once
  std::vector<Source> sources;  ///< each text once
  std::vector<Constant> constants;
  std::vector<Graph> bodies;      ///< nested classes: bodies of higher-order ops, by className
  bool hasDescriptors = false;    ///< written by PyTorch 2.9 or later
  bool hasBackwardMarks = false;  ///< written by 2.15 or later
  bool hasCheckpointTags = false;

  std::size_t valueCount() const { return inputs.size() + nodes.size(); }
  /// Values are the inputs, then the nodes.
  const std::string& valueName(std::size_t value) const {
    return value < inputs.size() ? inputs[value].name : nodes[value - inputs.size()].name;
  }
  std::uint32_t valueType(std::size_t value) const {
    return value < inputs.size() ? inputs[value].type : nodes[value - inputs.size()].type;
  }
  const Graph* body(std::string_view name) const;
};

/// "PyTorch 2.9 or later": what the text's form says of who wrote it.
std::string_view writtenBy(const Graph& graph);

}  // namespace retrograd::fx

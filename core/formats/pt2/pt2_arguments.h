#pragma once
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/formats/json/json_tree.h"
#include "core/trace/document.h"
#include "core/trace/symbol.h"

namespace retrograd::pt2 {

/// Names of one graph: what its tensor_values say of them and which value each represents once defined.
class Scope {
 public:
  explicit Scope(const Json& graph);

  /// Shape and dtype of a tensor of this graph; Error(badInput) when the graph does not say.
  TensorMeta meta(std::string_view name) const;
  bool hasMeta(std::string_view name) const { return metas_.contains(name); }
  /// Expression of a number or condition of this graph over the file's size symbols; empty where the graph gives none.
  std::string sizeExpression(std::string_view name) const;
  /// Error(badInput) when the name is taken: every name is defined once.
  void define(std::string_view name, ValueId value);
  /// Error(badInput) when nothing above defines the name.
  ValueId use(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, const Json*> metas_, numbers_;
  std::unordered_map<std::string_view, ValueId> values_;
};

/// Turns the arguments of a node into patterns with holes. A schema's type, where there is one, is checked and decides
/// what an empty list or an integer for a float means.
class ArgumentReader {
 public:
  using AddGraph = std::function<SubgraphId(const Json& graphArgument)>;

  /// `operands` receives the value for each hole; `addGraph` is called for graphs of higher-order ops.
  ArgumentReader(const Scope& scope, std::vector<ValueId>& operands, AddGraph addGraph)
      : scope_(scope), operands_(operands), addGraph_(std::move(addGraph)) {}

  /// Throws Error(badInput): an unknown or unfit kind of argument, an undefined name.
  Argument read(const Json& argument, const SchemaType* type = nullptr);

 private:
  Argument hole(std::string_view name);
  Argument symbolic(const Json& value);
  Argument tensors(const Json& list, const SchemaType* type);
  Argument optionalTensor(const Json& value);
  template <class Element>
  Argument list(const Json& items, Element&& element);
  Argument readKind(std::string_view kind, const Json& value, const SchemaType* type);

  const Scope& scope_;
  std::vector<ValueId>& operands_;
  AddGraph addGraph_;
};

/// Error(badInput) unless this is a kind of value that flows into a graph.
void checkInputKind(const Json& input);

/// Name of the value that an argument of one value refers to ({"as_tensor": {"name": "x"}}); empty for literals and
/// None.
std::string_view valueName(const Json& argument);

}  // namespace retrograd::pt2

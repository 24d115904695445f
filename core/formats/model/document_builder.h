#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/trace/document.h"

namespace retrograd {

/// An argument of a call as a graph gives it.
struct GivenArgument {
  std::string name;  ///< empty: by position
  Argument value;    ///< holes are indices into GraphCall::operands
  std::string text;  ///< as the graph has it, for errors
};

/// Where an op of a derived trace comes from: an op of a computation that is not in the document, by a value that it
/// makes and by its name.
struct GivenOrigin {
  Role role = Role::none;
  std::string value;
  std::string op;  ///< "torch.ops.aten.mm.default"; empty: the value flows in, as a cotangent does
};

/// A call as a reader of graphs meets it. Results have their types (DocumentBuilder::setType) where the graph has them.
struct GraphCall {
  SymbolId symbol;
  std::vector<GivenArgument> arguments;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;       ///< none: a result that is None
  std::vector<std::int32_t> returns;  ///< as CallPattern::returns
  std::optional<GivenOrigin> origin;  ///< none: an op of the computation
  SourceStackId source;
  bool gradMode = true;  ///< computation: false under no_grad
  int line = 0;          ///< in the graph's text, for the list of unknown ops
};

/// Makes the document of a graph that a reader goes through in order: values by name, then call by call. It fits
/// arguments into the schema, and fills in what follows from call and operands (trace/implied.h): storages, versions,
/// effects, kinds.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(const SymbolLookup& lookup) : lookup_(lookup), document_(std::make_shared<Document>()) {}

  Document& document() { return *document_; }
  std::shared_ptr<Document> take() { return std::move(document_); }

  /// The op of this name ("torch.ops.aten.mm.default"); without its overload the default one.
  SymbolId symbol(std::string_view target);
  /// A new value. Where another one has its name already, a number follows it.
  ValueId define(std::string_view name);
  /// A new value that flows in, in a storage of its own.
  ValueId defineInput(std::string_view name, const TensorMeta& meta, ValueKind kind);
  /// Throws Error(badInput) for a tensor that cannot be: a negative size or stride, more than 2^63 bytes.
  void setType(ValueId value, const TensorMeta& meta);
  /// Adds an op. Throws Error(badInput) where the arguments do not fit the schema.
  BoundSymbolId add(GraphCall call);

  /// A warning for each name of ops of the computation that LibTorch does not have.
  std::vector<Problem> problems() const;

 private:
  ValueId named(std::string_view name);
  bool standsForTensor(ValueId value) const { return document_->isTensor(value) || tensors_[value] != 0; }
  CallPattern patternOf(GraphCall& call) const;
  void placeArguments(GraphCall& call, CallPattern& pattern) const;
  Argument placed(const GivenArgument& given, const SchemaEntry& entry, const std::vector<ValueId>& from,
                  std::vector<ValueId>& operands) const;
  Origin originOf(const GivenOrigin& given, SourceStackId source);
  BoundSymbolId standIn(const GivenOrigin& given, SourceStackId source);
  void describePlace(BoundSymbolId op, const GraphCall& call);
  void describeResult(BoundSymbolId op, std::size_t result);
  void setStorage(ValueId value, ValueId base);

  const SymbolLookup& lookup_;
  std::shared_ptr<Document> document_;
  std::unordered_map<std::string, SymbolId> symbols_;  ///< by name as a graph has it
  std::unordered_map<std::string, ValueId> values_;
  std::unordered_map<std::string, int> suffixes_;
  std::unordered_set<std::string> defined_;
  IdVector<ValueId, char> tensors_;                                        ///< the schema says so, whatever its type
  std::map<std::pair<std::string, std::string>, BoundSymbolId> standIns_;  ///< by value and op
  std::map<std::string, std::vector<std::pair<BoundSymbolId, int>>> unknown_;  ///< with their lines
};

}  // namespace retrograd

#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/id_vector.h"
#include "core/formats/model/name_table.h"
#include "core/trace/document.h"

namespace retrograd {

/// What a graph says of a value besides its type. What it does not say follows from the op that makes it.
struct GivenFacts {
  std::optional<ValueKind> kind;
  std::optional<std::int32_t> version;
  std::optional<bool> requiresGrad;
  ValueId shares;           ///< lies in the storage of this one
  bool ownStorage = false;  ///< lies in no operand's storage
  std::optional<std::int64_t> storageBytes;
  std::optional<bool> external;
};

/// Where an op is in the program, and how it runs there.
struct CallPlace {
  StringId module;
  SourceStackId source;
  std::string node;              ///< computation: its name in the file; empty: that of its first result
  std::optional<bool> gradMode;  ///< false under no_grad
  int line = 0;                  ///< in the graph's text
};

/// An argument of a call as a graph gives it.
struct GivenArgument {
  std::string_view name;  ///< empty: by position
  Argument value;         ///< holes are indices into the operands of the call
};

/// Arguments do not fit the schema: the one at `position`, or their number.
class MisfitArgument : public Error {
 public:
  MisfitArgument(const std::string& message, std::size_t which)
      : Error(ErrorCode::badInput, message), position(which) {}
  std::size_t position;  ///< npos: of the call as a whole
  static constexpr auto npos = static_cast<std::size_t>(-1);
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
  CallPattern pattern;  ///< with its arguments (DocumentBuilder::setArguments) and returns
  std::vector<ValueId> operands;
  std::vector<ValueId> results;       ///< none: a result that is None
  std::optional<GivenOrigin> origin;  ///< none: an op of the computation
  CallPlace place;
};

/// Makes the document of a graph that a reader goes through in order: values by name, then call by call. It fits
/// arguments into the schema, and fills in what follows from call and operands (trace/implied.h): storages, versions,
/// effects, kinds.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(const SymbolLookup& lookup) : lookup_(lookup), document_(std::make_shared<Document>()) {}

  Document& document() { return *document_; }
  const std::shared_ptr<Document>& shared() const { return document_; }

  // Values.

  /// Null where nothing has this name.
  const ValueId* find(std::string_view name) const { return values_.find(name); }
  /// The value of this name; a new one, of which nothing is known yet, where there is none.
  ValueId named(std::string_view name);
  /// A value that is about to be described. Where another one has its name already, a number follows it.
  ValueId define(std::string_view name);
  /// Whether it flowed in or was made by an op that was added.
  bool isDescribed(ValueId value) const { return described_[value] != 0; }
  void setDescribed(ValueId value) { described_[value] = 1; }
  /// Whether it is a tensor: it has a type, or the schema of its op says so.
  bool standsForTensor(ValueId value) const { return document_->isTensor(value) || tensors_[value] != 0; }
  void setTensor(ValueId value, bool isTensor) { tensors_[value] = isTensor ? 1 : 0; }
  /// Throws Error(badInput) for a tensor that cannot be: a negative size or stride, more than 2^63 bytes.
  void setType(ValueId value, const TensorMeta& meta);
  /// A value that flows in, with its type.
  void describeInput(ValueId value, const GivenFacts& facts);
  /// Where it lies: as `facts` say, else in the storage of `base`, else in its own. What is said later of a value that
  /// lies somewhere joins both storages.
  void setStorage(ValueId value, const GivenFacts& facts, ValueId base);

  // Ops.

  /// The op of this name ("torch.ops.aten.mm.default"); without its overload the default one.
  SymbolId symbol(std::string_view target);
  /// Makes `pattern.arguments` and `operands` of what is given: in the order of the schema, where the op has one.
  /// `textOf`: an argument as the graph has it, for errors. Throws MisfitArgument.
  void setArguments(GraphCall& call, std::vector<GivenArgument> given,
                    const std::function<std::string(std::size_t)>& textOf) const;
  /// Adds an op with all that follows.
  BoundSymbolId add(const GraphCall& call);
  /// In place of an op of a computation that is not in the document: one of this name, which makes a value of that
  /// name, or nothing where `value` is empty.
  BoundSymbolId standIn(const std::string& value, const std::string& op, const CallPlace& place);
  /// Where an op of the computation is in the program; a derived op is where its origin is.
  void describePlace(BoundSymbolId op, const CallPlace& place, bool isDerived);
  /// Kind, storage and so on of a result. `isNew`: this op is the first to make it. False where the op returns an
  /// operand.
  bool describeResult(BoundSymbolId op, std::size_t result, const GivenFacts& facts, bool isNew, bool isDerived);
  /// An op of the computation that LibTorch does not have.
  void addUnknown(BoundSymbolId op, int line);
  /// A warning for each name of such ops.
  std::vector<Problem> problems() const;

 private:
  Argument placed(Argument value, const SchemaEntry& entry, const std::vector<ValueId>& from,
                  std::vector<ValueId>& operands, const std::function<std::string()>& text, std::size_t position) const;
  void joinStorages(StorageId from, StorageId to);
  Origin originOf(const GivenOrigin& given, const CallPlace& place);

  const SymbolLookup& lookup_;
  std::shared_ptr<Document> document_;
  std::unordered_map<std::string, SymbolId> symbols_;  ///< by name as a graph has it
  NameTable<ValueId> values_;                          ///< by their names, which the document keeps
  std::unordered_map<std::string, int> suffixes_;
  IdVector<ValueId, char> described_, tensors_;
  IdVector<StorageId, std::vector<ValueId>> members_;                          ///< the values in it
  std::map<std::pair<std::string, std::string>, BoundSymbolId> standIns_;      ///< by value and op
  std::map<std::string, std::vector<std::pair<BoundSymbolId, int>>> unknown_;  ///< with their lines
};

}  // namespace retrograd

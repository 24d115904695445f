#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/id_vector.h"
#include "core/base/string_table.h"
#include "core/base/tensor_meta.h"
#include "core/sizes/size_expression.h"
#include "core/trace/argument.h"
#include "core/trace/symbol.h"

namespace retrograd {

enum class ValueKind : std::uint8_t { input, parameter, buffer, constant, activation, cotangent, gradient };
std::string_view name(ValueKind);

/// What flows between bound symbols: a tensor (meta is valid) or a number, symbolic size, token (meta is not).
struct Value {
  StringId name;  ///< none: displayed as t<id>
  MetaId meta;
  StorageId storage;       ///< none for what is not a tensor
  BoundSymbolId producer;  ///< none for inputs, parameters, cotangents
  ValueKind kind = ValueKind::activation;
  bool requiresGrad = false;
  std::int32_t version = 0;  ///< how many writes its storage had seen when this value was made
};

/// The memory under values. Last use, memory and saved bytes are asked of storages.
struct Storage {
  std::int64_t bytes = 0;
  ValueId first;          ///< the value that allocated it
  bool external = false;  ///< input, parameter, buffer or constant: never written, copied on first write
};

/// Why a bound symbol is in a derived trace.
enum class Role : std::uint8_t { none, forward, gradient, accumulation, recompute, zero, cotangent };
std::string_view name(Role);

/// Where a bound symbol of a joint, forward or backward trace comes from. Known by construction, never guessed.
struct Origin {
  BoundSymbolId op;  ///< computation op; none when the value is a graph input
  Role role = Role::none;
  std::int16_t operand = -1;  ///< the forward op's tensor operand the gradient is for (flat, in schema order)
  std::int16_t output = -1;   ///< the forward op's output whose cotangent is read, where there is just one
  ValueId value;              ///< accumulation: whose gradient is summed; gradient: whose gradient this leads to
  std::uint32_t termsBegin =
      0;  ///< accumulation: the gradients summed so far, in order; the additions into one gradient share a list
  std::uint32_t termCount = 0;
};

/// Bits of BoundSymbol::effects.
namespace effect {
inline constexpr std::uint8_t writes = 1;      ///< writes a storage
inline constexpr std::uint8_t random = 2;      ///< draws from the generator
inline constexpr std::uint8_t opaque = 4;      ///< order matters for reasons unknown to us (tokens, assertions)
inline constexpr std::uint8_t view = 8;        ///< its output shares storage with an operand
inline constexpr std::uint8_t needsData = 16;  ///< its result depends on data: the trace holds for these inputs only

inline constexpr std::pair<std::uint8_t, std::string_view> names[]{
    {writes, "writes"}, {random, "random"}, {opaque, "opaque"}, {view, "view"}, {needsData, "needs_data"}};
}  // namespace effect

/// An op applied: a Symbol with arguments and outputs. Operands and outputs live in the Document's arena.
struct BoundSymbol {
  SymbolId symbol;
  PatternId pattern;
  std::uint32_t valuesBegin = 0;  ///< operands, then outputs
  std::uint16_t operandCount = 0;
  std::uint16_t outputCount = 0;
  BoundSymbolId parent;  ///< computation op whose subsymbol it is; in the computation: the enclosing higher-order op
  SourceStackId source;
  StringId module;  ///< path: "layers.0.mlp"
  StringId name;    ///< node name in the file, computation only
  Origin origin;
  std::uint8_t effects = 0;
  bool gradMode = true;  ///< computation: false inside a no_grad region
  bool recomputed = false;
  BoundSymbolId
      replays;  ///< recomputed random ops: the original, from whose generator state it draws once more; none otherwise
};

struct SourceFrame {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;
  bool operator==(const SourceFrame&) const = default;
};
/// Innermost frame last, as Python prints it.
using SourceStack = std::vector<SourceFrame>;

/// A symbol of a file with dynamic shapes, over which sizes are expressions.
struct SizeSymbol {
  std::string name;                      ///< "s77"
  std::int64_t hint = 1;                 ///< what it is for the inputs at hand
  std::int64_t least = 0;                ///< range that the file declares
  std::optional<std::int64_t> greatest;  ///< none: unbounded
};

/// Body of a higher-order op (a branch of cond, a no_grad region): ops of the computation that are under it.
struct Subgraph {
  std::string name;
  std::vector<ValueId> inputs;
  std::vector<Argument> outputs;  ///< literals or holes into outputValues
  std::vector<ValueId> outputValues;
  std::vector<BoundSymbolId> ops;
};

/// The root: append-only tables shared by all traces made from one file. Built on one thread; once handed on as
/// shared_ptr<const Document> it never changes, so any thread may read it.
class Document {
 public:
  StringId intern(std::string_view text) { return strings_.intern(text); }
  std::string_view text(StringId id) const { return strings_.text(id); }

  MetaId internMeta(const TensorMeta&);
  const TensorMeta& meta(MetaId id) const { return metas_[id]; }
  /// The shape, dtype and place of a tensor; the value is one (isTensor).
  const TensorMeta& meta(ValueId id) const { return metas_[values_[id].meta]; }

  /// Adds the symbol unless one of that name is there; returns its id.
  SymbolId internSymbol(const Symbol&);
  SymbolId findSymbol(std::string_view name) const;
  const Symbol& symbol(SymbolId id) const { return symbols_[id]; }
  const Symbol& symbol(BoundSymbolId id) const { return symbols_[boundSymbols_[id].symbol]; }

  PatternId internPattern(const CallPattern&);
  const CallPattern& pattern(PatternId id) const { return patterns_[id]; }

  SourceStackId internSource(const SourceStack&);
  const SourceStack& source(SourceStackId id) const;

  StorageId addStorage(std::int64_t bytes, ValueId first = {}, bool external = false);
  const Storage& storage(StorageId id) const { return storages_[id]; }
  const Storage& storage(ValueId id) const { return storages_[values_[id].storage]; }
  Storage& storage(StorageId id) { return storages_[id]; }
  Storage& storage(ValueId id) { return storages_[values_[id].storage]; }

  ValueId addValue(const Value&);
  const Value& value(ValueId id) const { return values_[id]; }
  Value& value(ValueId id) { return values_[id]; }
  bool isTensor(ValueId id) const { return value(id).meta.valid(); }

  BoundSymbolId addBoundSymbol(const BoundSymbol&, std::span<const ValueId> operands, std::span<const ValueId> outputs);
  const BoundSymbol& boundSymbol(BoundSymbolId id) const { return boundSymbols_[id]; }
  BoundSymbol& boundSymbol(BoundSymbolId id) { return boundSymbols_[id]; }
  std::span<const ValueId> operands(BoundSymbolId id) const;
  std::span<const ValueId> outputs(BoundSymbolId id) const;
  std::span<ValueId> outputs(BoundSymbolId id);
  std::span<const ValueId> terms(const Origin& origin) const;
  void setTerms(Origin& origin, std::span<const ValueId> terms);

  SubgraphId addSubgraph(Subgraph);
  const Subgraph& subgraph(SubgraphId id) const { return subgraphs_[id]; }
  Subgraph& subgraph(SubgraphId id) { return subgraphs_[id]; }

  /// Size symbols of the file, in order of their first use; empty for a model of fixed shapes.
  const std::vector<SizeSymbol>& sizeSymbols() const { return sizeSymbols_; }
  void setSizeSymbols(std::vector<SizeSymbol> symbols) { sizeSymbols_ = std::move(symbols); }
  /// Hints of all size symbols.
  SizeBindings sizeHints() const;
  /// Expression of a number over the size symbols; empty where it is none.
  std::string_view sizeExpression(ValueId number) const;
  void setSizeExpression(ValueId number, std::string expression) {
    sizeExpressions_[number.index] = std::move(expression);
  }

  /// Whether the id is one of this document's.
  bool contains(ValueId id) const { return values_.contains(id); }
  bool contains(BoundSymbolId id) const { return boundSymbols_.contains(id); }
  bool contains(StorageId id) const { return storages_.contains(id); }
  /// All ids of a table, in order.
  IdRange<ValueId> valueIds() const { return values_.ids(); }
  IdRange<BoundSymbolId> boundSymbolIds() const { return boundSymbols_.ids(); }
  IdRange<SubgraphId> subgraphIds() const { return subgraphs_.ids(); }

  std::size_t stringCount() const { return strings_.size(); }
  std::size_t metaCount() const { return metas_.size(); }
  std::size_t symbolCount() const { return symbols_.size(); }
  std::size_t patternCount() const { return patterns_.size(); }
  std::size_t sourceCount() const { return sources_.size(); }
  std::size_t valueCount() const { return values_.size(); }
  std::size_t storageCount() const { return storages_.size(); }
  std::size_t boundSymbolCount() const { return boundSymbols_.size(); }
  std::size_t subgraphCount() const { return subgraphs_.size(); }

  /// `base`, or where that names something already, `base_1`, `base_2`, ...: names never clash.
  StringId internUnique(const std::string& base) { return strings_.internUnique(base); }
  /// Display name: the file's, else t<id>; never a name the file gave to something else.
  std::string displayName(ValueId id) const;
  /// "torch.ops.aten.linear.default"
  std::string opName(BoundSymbolId id) const { return symbol(id).qualifiedName(); }
  /// Allocated bytes of the tables (not of tensors); for the memory budget of large traces.
  std::size_t tableBytes() const;

 private:
  StringTable strings_;
  IdVector<MetaId, TensorMeta> metas_;
  std::unordered_map<std::size_t, std::vector<MetaId>> metaIndex_;
  IdVector<SymbolId, Symbol> symbols_;
  std::map<std::string, SymbolId, std::less<>> symbolIndex_;
  IdVector<PatternId, CallPattern> patterns_;
  std::unordered_map<std::size_t, std::vector<PatternId>> patternIndex_;
  IdVector<SourceStackId, SourceStack> sources_;
  std::unordered_map<std::size_t, std::vector<SourceStackId>> sourceIndex_;
  IdVector<StorageId, Storage> storages_;
  IdVector<ValueId, Value> values_;
  IdVector<BoundSymbolId, BoundSymbol> boundSymbols_;
  std::vector<ValueId> arena_;
  IdVector<SubgraphId, Subgraph> subgraphs_;
  std::vector<SizeSymbol> sizeSymbols_;
  std::unordered_map<std::int32_t, std::string> sizeExpressions_;
};

/// Calls `visit` with each body that an argument is or holds.
template <class Visit>
void forEachBody(const Argument& argument, const Visit& visit) {
  if (argument.kind == Argument::Kind::subgraph) visit(SubgraphId(argument.integer));
  for (const auto& item : argument.items) forEachBody(item, visit);
}
/// The same of all arguments of an op.
template <class Visit>
void forEachBody(const Document& document, BoundSymbolId op, const Visit& visit) {
  for (const auto& argument : document.pattern(document.boundSymbol(op).pattern).arguments)
    forEachBody(argument, visit);
}

}  // namespace retrograd

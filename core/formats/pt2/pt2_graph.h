#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/id_vector.h"
#include "core/base/progress.h"
#include "core/formats/pt2/pt2_arguments.h"
#include "core/formats/pt2/pt2_metadata.h"
#include "core/trace/trace.h"

namespace retrograd::pt2 {

/// Inputs, ops and outputs of the main graph.
struct GraphBody {
  std::vector<ValueId> inputs;
  std::vector<Argument> outputs;  ///< literals or holes into outputValues
  std::vector<ValueId> outputValues;
  std::vector<std::string_view> outputNames;  ///< as in the file, empty for literals
  std::vector<BoundSymbolId> ops;
};

/// Reads graphs into a Document: values, storages, bound symbols, subgraphs of higher-order ops.
class GraphReader {
 public:
  GraphReader(Document& document, const SymbolLookup& lookup, const Progress& progress)
      : document_(document), lookup_(lookup), progress_(progress), metadata_(document) {}

  /// `specs` are parallel to the graph's inputs; their `value` is set. `storages` gives the storage for a storageKey.
  GraphBody readMain(const Json& graph, std::vector<InputSpec>& specs,
                     std::unordered_map<std::string, StorageId>& storages);
  /// Unknown ops, lost custom functions, recovered detach and no_grad.
  std::vector<Problem> problems() const;

 private:
  struct Op {
    SymbolId symbol;
    std::vector<SchemaType> arguments, returns;
    bool hasSchema = false, isToken = false;
  };
  /// A graph argument met while a node's arguments are read; read once the node itself is in the document.
  struct PendingGraph {
    SubgraphId id;
    const Json* graph;
  };
  struct Call {
    std::vector<ValueId> operands, outputs;
    CallPattern pattern;
    std::vector<PendingGraph> graphs;
  };
  struct Place {
    BoundSymbolId op;
    std::string text;
  };

  const Op& opOf(std::string_view target);
  std::vector<BoundSymbolId> readNodes(const Json& graph, Scope& scope, BoundSymbolId parent, bool gradMode);
  BoundSymbolId readNode(const Json& node, Scope& scope, BoundSymbolId parent, bool gradMode);
  std::string graphName(std::string_view name, const Call& call) const;
  void readArguments(const Json& node, const Op& op, const Scope& scope, Call& call);
  void readSchemaArguments(std::span<const Json> inputs, const Op& op, ArgumentReader& reader, Call& call);
  void readFreeArguments(std::span<const Json> inputs, ArgumentReader& reader, Call& call);
  void applyWrites(const Op& op, const Call& call);
  void readOutputs(const Json& node, const Op& op, Scope& scope, Call& call);
  void readOutput(const Json& output, StorageId shared, bool asToken, Scope& scope, Call& call);
  void reserveNames(const Json& graph);
  StringId displayNameFor(std::string_view name);
  ValueId defineTensor(std::string_view name, Scope& scope, ValueKind kind, StorageId shared);
  ValueId defineOther(std::string_view name, Scope& scope, ValueKind kind);
  ValueId defineInput(const Json& input, InputSpec& spec, Scope& scope,
                      std::unordered_map<std::string, StorageId>& storages);
  void readSubgraphs(BoundSymbolId op, const Call& call, bool gradMode);
  void readSubgraph(const PendingGraph& pending, BoundSymbolId op, std::span<const ValueId> passed, bool gradMode);
  std::int32_t& writesTo(StorageId storage);
  void notePlaces(const Symbol& symbol, BoundSymbolId op, const NodeOrigin& origin);
  std::string placeOf(BoundSymbolId op) const;

  Document& document_;
  const SymbolLookup& lookup_;
  const Progress& progress_;
  MetadataReader metadata_;
  std::unordered_map<std::string, Op> ops_;
  IdVector<StorageId, std::int32_t> writes_;  ///< how often each was written so far
  std::map<std::string, std::vector<Place>> unknown_;
  std::vector<Place> detached_, withoutGrad_;
  std::unordered_set<std::string> reserved_, taken_;  ///< names of the main graph; names of values so far
  std::unordered_map<std::string, int> suffixes_;
  int depth_ = 0;
  std::size_t nodesRead_ = 0;
};

}  // namespace retrograd::pt2

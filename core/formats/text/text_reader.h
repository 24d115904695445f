#pragma once
// Working state of the reader of printed traces; only the text_*.cpp files include this.
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "core/base/id_vector.h"
#include "core/formats/model/document_builder.h"
#include "core/formats/model/name_table.h"
#include "core/formats/text/text_comments.h"
#include "core/formats/text/text_trace.h"

namespace retrograd::text {

/// From functions to traces. The computation comes first, whatever the text's order, because the others refer to it.
class TextReader {
 public:
  TextReader(const Source& source, const SymbolLookup& lookup, const Progress& progress);
  TextTraces read(TextParts parts);

 private:
  struct Name {
    ValueId value;
    int line = 0;
  };
  /// What names mean in a function. A body sees the names of the functions around it.
  struct Scope {
    const Scope* outer = nullptr;
    TraceKind kind = TraceKind::computation;
    BoundSymbolId parent;  ///< the higher-order op whose body it is
    NameTable<Name> names;
    std::map<std::string, std::shared_ptr<const Function>, std::less<>> bodies;  ///< functions defined so far
    std::map<std::string, std::int64_t, std::less<>> sizes;                      ///< symbolic sizes with their hints
    std::string module;                                                          ///< of the ops to come
    SourceStackId source;
    bool inBackward = false;
    std::size_t border = std::string::npos;  ///< joint: ops before its backward
    int depth = 0;
  };
  struct PendingBody {
    SubgraphId id;
    std::shared_ptr<const Function> function;
  };
  struct Call : GraphCall {
    std::vector<PendingBody> bodies;
  };
  /// Left of the "=": names in order ("" is None), and how they group.
  struct Targets {
    std::vector<std::string_view> names;
    std::vector<Place> places;
    std::vector<std::int32_t> returns;
  };

  // text_trace.cpp: functions
  bool readInOrder(TextParts parts);
  void readOthers();
  void collectNames();
  void readFunction(const Function& function, FunctionReader& reader);
  std::vector<std::optional<ValueNote>> readHead(const Function& function, Scope& scope,
                                                 std::vector<ValueNote>& literals);
  void readSignature(const Function& function, Scope& scope, Trace& trace);
  ValueId readParameter(const Parameter& parameter, std::size_t position, const ValueNote* note, Scope& scope);
  void describeInput(ValueId id, const ValueNote& note, const Scope& scope);
  void addInputSpec(ValueId id, const Parameter& parameter, const ValueNote* note);
  std::vector<BoundSymbolId> readStatements(const std::function<const Statement&()>& next, Scope& scope);
  void readHeading(const Comment& comment, Scope& scope);
  void declare(const SizeSymbol& size);
  void readResults(const Statement& statement, Scope& scope, Trace& trace);
  void addOutputSpecs(const Statement& statement, const std::vector<Argument>& literals, const Trace& trace);
  void checkTrace(const Trace& trace, Place place);

  // text_values.cpp: names and values
  ValueId define(std::string_view name, Place place, Scope& scope);
  ValueId find(std::string_view name, const Scope& scope) const;
  ValueId use(std::string_view name, Place place, const Scope& scope) const;
  ValueId namedAnywhere(std::string_view name);
  void setType(ValueId id, const ValueNote& note);
  std::string freshName(std::string_view name);
  GivenFacts factsOf(ValueId id, const ValueNote& note, const Scope& scope) const;
  void grow();

  // text_calls.cpp: calls and their arguments
  Call readCall(const Expression& call, const Scope& scope);
  Symbol resolve(const Expression& callee);
  void checkArguments(const Expression& call) const;
  void readArguments(const Expression& expression, const Scope& scope, Call& call);
  static Argument hole(ValueId value, Call& call);
  Argument argument(const Expression& expression, const Scope& scope, Call& call);
  Argument nameArgument(const Expression& expression, std::string_view name, const Scope& scope, Call& call);
  Argument callArgument(const Expression& expression) const;
  Argument bodyArgument(const std::shared_ptr<const Function>& function, Call& call);
  const std::int64_t* scopeSize(std::string_view name, const Scope& scope) const;
  const std::int64_t* sizeNamed(std::string_view name, const Scope& scope) const;
  std::int64_t evaluate(const Expression& expression, const Scope& scope, bool& isSymbolic) const;
  std::int64_t evaluateFunction(const Expression& call, const Scope& scope, bool& isSymbolic) const;
  Argument quotientArgument(const Expression& expression, const Scope& scope) const;
  Argument sizeArgument(const Expression& expression, const Scope& scope) const;

  // text_ops.cpp: ops, their outputs and bodies
  BoundSymbolId readOp(const Statement& statement, Scope& scope);
  Targets readTargets(const Statement& statement, const Symbol& symbol) const;
  std::vector<ValueId> defineOutputs(const Targets& targets, const Call& call, const OpNote& note, Scope& scope);
  BoundSymbolId known(const Call& call, std::span<const ValueId> outputs);
  void describeOutputs(BoundSymbolId op, const Targets& targets, const OpNote& note, const std::vector<char>& isNew,
                       const Scope& scope);
  void describeState(BoundSymbolId op, const OpNote& note, const Scope& scope);
  void describePlace(BoundSymbolId op, const OpNote& note, const Scope& scope);
  void describeState(BoundSymbolId op, const OpNote& note);
  void readBody(BoundSymbolId op, const PendingBody& body, const Scope& around);
  ValueId readBodyParameter(const Parameter& parameter, std::size_t position, const ValueNote* note, ValueId passed,
                            Scope& scope);

  // text_origins.cpp: where derived ops come from
  Origin readOrigin(const OpNote& note, BoundSymbolId op, const Scope& scope);
  BoundSymbolId ownOrigin(BoundSymbolId op, const Scope& scope);
  BoundSymbolId resolve(const Reference& reference, const Scope& scope);
  BoundSymbolId standIn(const std::string& name, const std::string& op, const Scope& scope);
  CallPlace placeOf(const Scope& scope);
  BoundSymbolId original(ValueId value, SymbolId symbol);
  void noteTerms(const OpNote& note, BoundSymbolId op, ValueId summed);
  void setTerms();

  const Source& source_;
  const SymbolLookup& lookup_;
  const Progress& progress_;
  DocumentBuilder builder_;
  TextTraces result_;
  Document& document_;
  std::map<std::string, int, std::less<>> suffixes_;
  std::optional<std::unordered_set<std::string_view>>
      reserved_;  ///< names of the computation's own values, which no body takes; none until there is a body
  std::map<std::string, std::int64_t, std::less<>> metSizes_;  ///< symbolic sizes that types name, with their values
  std::unordered_map<std::string_view, SymbolId> symbols_;     ///< by path as written
  IdVector<ValueId, BoundSymbolId> producers_;                 ///< ops of the computation by output
  std::unordered_map<std::string, BoundSymbolId> nodes_;       ///< those that make nothing, by node name
  IdVector<ValueId, BoundSymbolId> derivedProducers_;
  std::unordered_map<std::string, std::vector<BoundSymbolId>>
      derivedOps_;                                    ///< by call, for ops that are in several traces
  std::unordered_map<std::string, std::size_t> met_;  ///< how many ops of this call the trace has had
  IdVector<BoundSymbolId, Place> places_;
  /// The first `count` terms of a list. Additions into one gradient share it.
  struct Terms {
    std::size_t list = 0, count = 0;
    ValueId summed;  ///< whose gradient
  };
  std::unordered_map<BoundSymbolId, Terms> sums_;
  std::vector<std::vector<ValueId>> termLists_;
  std::size_t statements_ = 0;
};

}  // namespace retrograd::text

#pragma once
// Working state of the grad transform; only the .cpp files of grad/ include this.
#include <span>
#include <unordered_map>
#include <vector>

#include "core/grad/derive.h"
#include "core/grad/transform.h"

namespace retrograd {

/// What a computation value is in the joint: a value, or a number known under these inputs.
struct Binding {
  ValueId value;
  std::optional<Argument> number;
  std::int32_t group = -1;              ///< alias group, only tracked where the computation writes in place
  std::int32_t version = 0;             ///< of the group when `value` was made
  std::vector<std::pair<BoundSymbolId, int>> path;  ///< view ops (and which output) from the group's root to the value
};

/// Values that share memory in eager PyTorch. The root's content after the writes so far is `current`.
struct AliasGroup {
  ValueId current;
  std::int32_t version = 0;
  std::int32_t input = -1;              ///< computation input it started from
  BoundSymbolId lastWriter;             ///< computation op
};

/// A rule applied: from its locals to the joint's values.
struct Instance {
  Rule* rule = nullptr;                 ///< null: the gradient of `to` passes unchanged to `from`
  BoundSymbolId op;                     ///< computation op
  std::size_t localsBegin = 0;          ///< in JointBuilder::locals
  ValueId from, to;
  SymbolId symbol;                      ///< what the rule was made for, to derive it again with data
  PatternId pattern;
  std::int32_t autocast = 0;
  bool withData = false;                ///< the rule was derived with real operands
};

/// How the ops of a region run.
struct RegionState {
  bool gradMode = true;
  AutocastState autocast;
};

class JointBuilder {
 public:
  JointBuilder(Document& document, const Computation& computation, const TransformOptions& options, RuleCache& cache, const Progress& progress);
  JointResult build();

 private:
  // forward_walk.cpp
  void bindInputs();
  void walk(const std::vector<BoundSymbolId>& ops);
  void visit(BoundSymbolId op);
  void applyOp(BoundSymbolId op);
  /// The op's call with numbers in place of the operands that are numbers here, and the operands that remain.
  struct Call {
    PatternId pattern;
    std::vector<ValueId> tensors;            ///< joint values by hole
    std::vector<ValueId> computationValues;  ///< the same as the computation names them
  };
  Call callOf(BoundSymbolId op);
  void bindOutputs(BoundSymbolId op, const Instance& instance, const Call& call);
  void evaluateNumbers(BoundSymbolId op);
  Argument argumentValue(BoundSymbolId op, const Argument& argument);
  void emitVerbatim(BoundSymbolId op);
  void moveStorages();

  // apply_rule.cpp
  /// Finds or derives the rule, emits its forward ops, and returns the instance (listed for the backward where it needs one).
  /// `preferred`: computation values to stand for the flat outputs, so that ids stay the same from trace to trace.
  Instance apply(BoundSymbolId op, SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors, bool gradMode,
                 std::span<const ValueId> preferred = {});
  /// `withData` tells that data decided the rule.
  Rule* ruleFor(SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors, bool gradMode, bool& withData);
  DeriveRequest requestFor(const std::string& symbol, const CallPattern& pattern, std::span<const ValueId> tensors, bool gradMode) const;
  /// `runReal`: on real tensors throughout, which sparse tensors and kernels that read data ask for.
  std::unique_ptr<Rule> deriveWithData(DeriveRequest request, std::span<const ValueId> tensors, bool runReal = false);
  const BackwardVariant& variantWithData(Instance& instance, const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents, bool runReal);
  std::int32_t autocastIndex();
  SymbolId internOp(const std::string& name);
  ValueId output(const Instance& instance, std::size_t flatOutput) const;
  ValueId valueOfLocal(const Instance& instance, std::int32_t local) const { return locals_[instance.localsBegin + static_cast<std::size_t>(local)]; }
  StorageId storageOf(const RuleLocal& local, std::vector<StorageId>& storages);
  ValueId makeValue(const RuleLocal& local, std::vector<StorageId>& storages, ValueKind kind, ValueId preferred = {});
  static Origin forwardOrigin(BoundSymbolId op);
  BoundSymbolId emit(const RuleOp& op, std::size_t localsBegin, const Origin& origin);
  BoundSymbolId emit(SymbolId symbol, PatternId pattern, std::uint8_t effects, std::span<const ValueId> operands, std::span<const ValueId> outputs,
                     const Origin& origin);
  void addConstants(const RuleConstants& constants, std::size_t localsBegin);
  at::Tensor real(ValueId value);

  // decomposition.cpp
  struct FlatOutput {
    ValueId value;
    std::optional<Argument> number;
  };
  /// The flat outputs of an op that LibTorch cannot differentiate and a registered decomposition can; nullopt where it is not for that.
  std::optional<std::vector<FlatOutput>> applyDecomposition(BoundSymbolId op, SymbolId symbol, PatternId pattern, const std::vector<ValueId>& tensors,
                                                            bool gradMode, const std::vector<ValueId>& preferred);
  std::vector<FlatOutput> applyAny(BoundSymbolId op, SymbolId symbol, PatternId pattern, const std::vector<ValueId>& tensors, bool gradMode,
                                   const std::vector<ValueId>& preferred);
  bool isDifferentiable(Rule& rule);
  void bindFlat(ValueId computationValue, const FlatOutput& output, const Call& call);

  // mutation.cpp
  bool tracksAliases() const { return tracksAliases_; }
  Binding& resolve(ValueId computationValue);
  void adoptAliases(Binding& binding);
  void refresh(Binding& binding);
  void applyMutation(BoundSymbolId op);
  void applyGeometryChange(BoundSymbolId op);
  void write(BoundSymbolId op, ValueId target, ValueId content);
  ValueId writeThrough(BoundSymbolId op, const Binding& target, ValueId content);
  ValueId applyView(BoundSymbolId origin, BoundSymbolId view, int output, ValueId base);
  ValueId invertView(BoundSymbolId origin, BoundSymbolId view, int output, ValueId base, ValueId content);
  ValueId call(BoundSymbolId origin, std::string_view symbol, CallPattern pattern, std::vector<ValueId> tensors);
  void passThrough(ValueId from, ValueId to, BoundSymbolId op);
  void copyBack();

  // regions.cpp
  void applyHigherOrder(BoundSymbolId op);
  std::vector<Binding> inlineSubgraph(const Subgraph& graph, const std::vector<Binding>& arguments);
  using Graphs = std::vector<SubgraphId>;
  using Arguments = std::vector<Argument>;
  void runCond(BoundSymbolId op, const Arguments& before, const Graphs& graphs, const Arguments& after);
  void runScan(BoundSymbolId op, const Graphs& graphs, const Arguments& after);
  void runMap(BoundSymbolId op, const Graphs& graphs, const Arguments& after);
  void runWhile(BoundSymbolId op, const Graphs& graphs, const Arguments& after);
  void applyWithEffects(BoundSymbolId op, const CallPattern& pattern);
  std::int64_t leadingSize(const std::vector<Binding>& stacked, std::string_view op) const;
  Binding bindingOf(BoundSymbolId op, const Argument& argument);
  std::vector<Binding> bindingsOf(BoundSymbolId op, const Argument& list);
  Binding select(BoundSymbolId op, const Binding& stacked, std::int64_t index);
  Binding stack(BoundSymbolId op, const std::vector<Binding>& slices);
  Binding shallowCopy(BoundSymbolId op, const Binding& result);
  void bindResults(BoundSymbolId op, const std::vector<Binding>& results);
  bool truth(const Binding& predicate);

  // backward_replay.cpp
  void replayBackward();
  void seedCotangents();
  void replay(Instance& instance);
  void accumulate(ValueId value, ValueId gradient);
  void nameTerms();
  const BackwardVariant& variantFor(Instance& instance, const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents);
  void emitVariant(const Instance& instance, const BackwardVariant& variant, const std::vector<ValueId>& cotangents);

  Document& document_;
  const Computation& computation_;
  const TransformOptions& options_;
  RuleCache& cache_;
  const Progress& progress_;

  std::vector<Binding> bindings_;            // by computation value
  std::vector<char> taken_;                  // computation values that already stand in the joint
  std::vector<AliasGroup> groups_;
  std::unordered_map<std::int32_t, std::int32_t> groupOfStorage_;
  std::unordered_map<std::int32_t, std::pair<BoundSymbolId, int>> viewOf_;  // by joint value: the view op that made it
  std::unordered_map<StorageId, StorageId> movedStorages_;  // the file's storages: where the values that were reused lie now
  bool tracksAliases_ = false;

  int decompositionDepth_ = 0;
  RegionState region_;
  std::vector<BoundSymbolId> ops_;           // the joint so far
  std::size_t forwardCount_ = 0;
  std::vector<ValueId> locals_;
  std::vector<AutocastState> autocasts_;     // distinct states met; a rule's key holds the index
  std::vector<StorageId> storageScratch_;    // scratch: reused, as these run once per op
  std::vector<ValueId> wantedScratch_, operandScratch_, outputScratch_;
  RuleCache::Key keyScratch_;
  std::vector<Instance> instances_;

  std::vector<ValueId> outputs_, cotangents_;
  struct Gradient {
    ValueId value;
    std::vector<ValueId> terms;              // all gradients summed into it, in order
    std::vector<BoundSymbolId> additions;
  };
  std::vector<Gradient> gradients_;          // by joint value
  JointResult result_;
};

}  // namespace retrograd

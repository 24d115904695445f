#pragma once
// Working state of the grad transform; only the .cpp files of grad/ include this.
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/id_vector.h"
#include "core/torch/grad/alias_families.h"
#include "core/torch/grad/derive.h"
#include "core/torch/grad/transform.h"

namespace retrograd {

/// What a computation value is in the joint: a value, or a number known under these inputs.
struct Binding {
  ValueId value;
  std::optional<Argument> number;
  std::int32_t tensor = -1;  ///< in JointBuilder::tensors_, only where the computation writes in place
};

/// A tensor as eager PyTorch has it, under all the names that the computation has for it (an in-place op returns the tensor it wrote to).
struct TensorState {
  ValueId value;
  std::int32_t family = -1;
  std::int32_t version = 0;  ///< of the family when `value` was made
  ViewPath path;             ///< from the family's base to the tensor
};

/// A rule applied: from its locals to the joint's values.
struct Instance {
  Rule* rule = nullptr;         ///< null: the gradient of `to` passes unchanged to `from`
  BoundSymbolId op;             ///< computation op
  std::size_t localsBegin = 0;  ///< in JointBuilder::locals
  ValueId from, to;
  SymbolId symbol;  ///< what the rule was made for, to derive it again with data
  PatternId pattern;
  std::int32_t autocast = 0;
  bool withData = false;  ///< the rule was derived with real operands
  WriteMode writes = WriteMode::cloneMarked;
  std::vector<std::pair<std::int32_t, ValueId>> readInstead;  ///< locals in whose place the backward reads another value
  BoundSymbolId opaque;                                       ///< of an opaque op: its op in the joint; it has no rule
};

/// How the ops of a region run.
struct RegionState {
  bool gradMode = true;
  AutocastState autocast;
};

/// Sets a region's grad mode and restores it.
class GradModeScope {
 public:
  GradModeScope(RegionState& region, bool gradMode) : region_(region), before_(region.gradMode) { region.gradMode = gradMode; }
  ~GradModeScope() { region_.gradMode = before_; }
  GradModeScope(const GradModeScope&) = delete;
  GradModeScope& operator=(const GradModeScope&) = delete;

 private:
  RegionState& region_;
  bool before_;
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

  // opaque_ops.cpp
  void applyOpaque(BoundSymbolId op);
  ValueId opaqueResult(BoundSymbolId op, ValueId declared);
  void refuseNumberOf(ValueId value, BoundSymbolId reader) const;
  void refuseThrough(const Instance& instance);
  bool refuseBefore(const Instance& instance);
  void refuseGradient(ValueId value, BoundSymbolId through);
  void noteRefusals();
  void moveStorages();

  // apply_rule.cpp
  /// Finds or derives the rule, emits its forward ops, and returns the instance (listed for the backward where it needs one).
  /// `preferred`: computation values to stand for the flat outputs, so that ids stay the same from trace to trace.
  Instance apply(BoundSymbolId op, SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors, std::span<const ValueId> preferred = {},
                 WriteMode writes = WriteMode::cloneMarked);
  /// `withData` tells that data decided the rule.
  Rule* ruleFor(SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors, WriteMode writes, bool& withData);
  DeriveRequest requestFor(const std::string& symbol, const CallPattern& pattern, std::span<const ValueId> tensors, WriteMode writes) const;
  /// `runReal`: on real tensors throughout, which sparse tensors and kernels that read data ask for.
  std::unique_ptr<Rule> deriveWithData(DeriveRequest request, std::span<const ValueId> tensors, bool runReal = false);
  const BackwardVariant& variantWithData(Instance& instance, const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents, bool runReal);
  std::int32_t autocastIndex();
  SymbolId internOp(const std::string& name);
  ValueId output(const Instance& instance, std::size_t flatOutput) const;
  ValueId valueOfLocal(const Instance& instance, std::int32_t local) const { return locals_[instance.localsBegin + local]; }
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
                                                            const std::vector<ValueId>& preferred);
  std::vector<FlatOutput> applyAny(BoundSymbolId op, SymbolId symbol, PatternId pattern, const std::vector<ValueId>& tensors,
                                   const std::vector<ValueId>& preferred);
  bool isDifferentiable(Rule& rule);
  void bindFlat(ValueId computationValue, const FlatOutput& output, const Call& call);

  // writes.cpp
  bool needsAliases() const;
  Binding& resolve(ValueId computationValue);
  ValueId valueOf(const Binding& binding);
  TensorState* tensorOf(ValueId computationValue);
  void placeBinding(Binding& binding);
  void catchUp(std::int32_t family);
  void applyMutation(BoundSymbolId op);
  void renewFromBase(BoundSymbolId op, ValueId written);
  void applyWriter(BoundSymbolId op, const Call& call, WriteMode writes);
  ValueId asAliased(BoundSymbolId op, const Call& call, std::int32_t written, ValueId content);
  bool writesUnseen(BoundSymbolId op) const;
  void write(BoundSymbolId op, ValueId target, ValueId content, bool recorded);
  void refuseLeaf(std::int32_t family);
  void replaceBase(BoundSymbolId op, std::int32_t family, const ViewPath& path, ValueId content, bool recorded);
  ValueId inGeometryOf(BoundSymbolId op, ValueId like, ValueId content);
  ValueId withGradientOf(BoundSymbolId op, ValueId data, ValueId lineage);
  ValueId joined(BoundSymbolId op, ValueId data, ValueId lineage);
  void renewWhatIsReadLate();
  void copyBack();
  void leaveInInput(std::size_t i, std::string_view op, std::vector<Argument> literals, const std::vector<ValueId>& operands, MetaId meta,
                    BoundSymbolId origin);

  // geometry_changes.cpp
  void applyGeometryChange(BoundSymbolId op);
  ValueId changeUnseen(BoundSymbolId op, ValueId leaf, ValueId before, ValueId changed);
  ValueId unusedLeaf(const TensorState& tensor) const;

  // view_steps.cpp
  ValueId call(BoundSymbolId origin, std::string_view symbol, CallPattern pattern, std::vector<ValueId> tensors);
  ValueId call1(BoundSymbolId origin, std::string_view symbol, std::vector<Argument> literals, ValueId tensor);
  ValueId follow(BoundSymbolId origin, const ViewPath& path, ValueId base);
  ValueId applyView(BoundSymbolId origin, const ViewStep& step, ValueId base);
  ValueId scatterThrough(BoundSymbolId origin, const ViewPath& path, ValueId base, ValueId content, bool ownsMemory);
  ValueId flat(BoundSymbolId origin, ValueId tensor);
  ValueId stridedView(BoundSymbolId origin, ValueId tensor, const TensorMeta& geometry);
  ValueId inDType(BoundSymbolId origin, ValueId flat, DType dtype);
  ValueId scatterByGeometry(BoundSymbolId origin, std::string_view view, ValueId base, ValueId viewed, ValueId content);
  ValueId invertView(BoundSymbolId origin, const ViewStep& step, ValueId base, ValueId viewed, ValueId content);

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
  void readLate(const Instance& instance, const BackwardVariant& variant, std::size_t begin, std::size_t count);
  void resizeGradients();
  const BackwardVariant& variantFor(Instance& instance, const std::vector<MetaId>& metas, const std::vector<ValueId>& cotangents);
  void emitVariant(const Instance& instance, const BackwardVariant& variant, const std::vector<ValueId>& cotangents);

  Document& document_;
  const Computation& computation_;
  const TransformOptions& options_;
  RuleCache& cache_;
  const Progress& progress_;

  IdVector<ValueId, Binding> bindings_;  // of computation values
  IdVector<ValueId, char> taken_;        // computation values that already stand in the joint
  std::vector<TensorState> tensors_;
  AliasFamilies aliases_;
  std::unordered_map<std::int32_t, ValueId> reshapedLeaves_;  // by family: the input that it is, reshaped under no_grad before a recorded op used it
  std::unordered_map<StorageId, StorageId> movedStorages_;    // the file's storages: where the values that were reused lie now
  bool tracksAliases_ = false;

  int decompositionDepth_ = 0;
  RegionState region_;
  std::vector<BoundSymbolId> ops_;  // the joint so far
  std::size_t forwardCount_ = 0;
  std::vector<ValueId> locals_;
  std::vector<AutocastState> autocasts_;   // distinct states met; a rule's key holds the index
  std::vector<StorageId> storageScratch_;  // scratch: reused, as these run once per op
  std::vector<ValueId> wantedScratch_, operandScratch_, outputScratch_;
  RuleCache::Key keyScratch_;
  std::vector<Instance> instances_;

  std::vector<ValueId> outputs_, cotangents_;
  struct Gradient {
    ValueId value;
    std::vector<ValueId> terms;  // all gradients summed into it, in order
    std::vector<BoundSymbolId> additions;
    BoundSymbolId refused;  // a part of it would pass through this opaque op: there is none then
  };
  IdVector<ValueId, Gradient> gradients_;  // of joint values
  JointResult result_;
};

}  // namespace retrograd

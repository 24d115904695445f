#pragma once
// Working state of the grad transform; only the .cpp files of grad/ include this.
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/id_vector.h"
#include "core/torch/grad/alias_families.h"
#include "core/torch/grad/gradient_sums.h"
#include "core/torch/grad/joint_writer.h"
#include "core/torch/grad/rule_finder.h"
#include "core/torch/grad/zero_tensors.h"

namespace retrograd {

/// What a computation value is in the joint: a value, or a number known under these inputs.
struct Binding {
  ValueId value;
  std::optional<Argument> number;
  std::int32_t tensor = -1;  ///< in JointBuilder::tensors_, only where the computation writes in place
};

/// A tensor as eager PyTorch has it, under all the names that the computation has for it (an in-place op returns the
/// tensor it wrote to).
struct TensorState {
  ValueId value;
  std::int32_t family = -1;
  std::int32_t version = 0;  ///< of the family when `value` was made
  ViewPath path;             ///< from the family's base to the tensor
  bool isView = false;  ///< to autograd, which an op in place that gives a base other sizes or strides does not make it
};

/// Walks the computation forward, then backward. It decides what each op becomes; RuleFinder finds the rules,
/// JointWriter writes the ops, GradientSums adds the gradients that meet, AliasFamilies follow writes to memory.
class JointBuilder {
 public:
  JointBuilder(Document& document, const Computation& computation, const TransformOptions& options, RuleCache& cache,
               const Progress& progress);
  JointResult build();

 private:
  // forward_walk.cpp
  void bindInputs();
  void walk(const std::vector<BoundSymbolId>& ops);
  void visit(BoundSymbolId op);
  void applyOp(BoundSymbolId op);
  /// The op's call with numbers instead of the operands that are numbers here, and the operands that remain.
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
  /// Finds or derives the rule, emits its forward ops, and returns the instance (listed for the backward where it needs
  /// one). `preferred`: computation values to stand for the flat outputs, so that ids stay the same from trace to
  /// trace.
  Instance apply(BoundSymbolId op, SymbolId symbol, PatternId pattern, std::span<const ValueId> tensors,
                 std::span<const ValueId> preferred = {}, WriteMode writes = WriteMode::cloneMarked);
  void refuseHiddenCasts(SymbolId symbol, std::span<const ValueId> tensors) const;
  ValueId output(const Instance& instance, std::size_t flatOutput) const;
  ValueId valueOfLocal(const Instance& instance, std::int32_t local) const {
    return writer_.locals()[instance.localsBegin + local];
  }

  // opaque_ops.cpp
  void applyOpaque(BoundSymbolId op);
  ValueId opaqueResult(BoundSymbolId op, ValueId declared);
  void refuseNumberOf(ValueId value, BoundSymbolId reader) const;
  void refuseThrough(const Instance& instance);
  bool refuseBefore(const Instance& instance);
  void noteRefusals();

  // decomposition.cpp
  struct FlatOutput {
    ValueId value;
    std::optional<Argument> number;
  };
  /// The flat outputs of an op that LibTorch cannot differentiate and a registered decomposition can; nullopt where it
  /// is not for that.
  std::optional<std::vector<FlatOutput>> applyDecomposition(BoundSymbolId op, SymbolId symbol, PatternId pattern,
                                                            const std::vector<ValueId>& tensors,
                                                            const std::vector<ValueId>& preferred);
  std::vector<FlatOutput> applyAny(BoundSymbolId op, SymbolId symbol, PatternId pattern,
                                   const std::vector<ValueId>& tensors, const std::vector<ValueId>& preferred);
  bool isDifferentiable(Rule& rule);
  void bindFlat(ValueId computationValue, const FlatOutput& output, const Call& call);

  // writes.cpp
  bool needsAliases() const;
  Binding& resolve(ValueId computationValue);
  ValueId valueOf(const Binding& binding);
  TensorState* tensorOf(ValueId computationValue);
  Binding bindingTo(ValueId value);
  void catchUp(std::int32_t family);
  void refuseSharedStatistics(BoundSymbolId op);
  void applyMutation(BoundSymbolId op);
  void renewFromBase(BoundSymbolId op, ValueId written);
  void applyWriter(BoundSymbolId op, const Call& call, WriteMode writes);
  ValueId asAliased(BoundSymbolId op, const Call& call, std::int32_t written, ValueId content);
  bool writesUnseen(BoundSymbolId op) const;
  void write(BoundSymbolId op, ValueId target, ValueId content, WriteMode writes);
  void refuseLeaf(std::int32_t family);
  void replaceBase(BoundSymbolId op, std::int32_t family, const ViewPath& path, ValueId content, bool recorded);
  ValueId inGeometryOf(BoundSymbolId op, ValueId like, ValueId content);
  ValueId withGradientOf(BoundSymbolId op, ValueId data, ValueId lineage);
  ValueId joined(BoundSymbolId op, ValueId data, ValueId lineage);
  void copyBack();
  void leaveInInput(std::size_t i, std::string_view op, std::vector<Argument> literals,
                    const std::vector<ValueId>& operands, MetaId meta, BoundSymbolId origin);

  // geometry_changes.cpp
  void applyGeometryChange(BoundSymbolId op);
  ValueId changeUnseen(BoundSymbolId op, ValueId leaf, ValueId before, ValueId changed);
  void bindOutput(BoundSymbolId op, ValueId target);
  void refuseViewsOf(BoundSymbolId op, std::int32_t former) const;
  bool isReplayedAsItWas(const ViewPath& path) const;
  [[noreturn]] void refuseReplayed(BoundSymbolId writer) const;
  const std::string& nameOf(BoundSymbolId op) const { return document_.symbol(op).name; }
  ValueId unusedLeaf(const TensorState& tensor) const;

  // late_reads.cpp
  void noteWhatIsReadLate(std::span<const ValueId> bound);
  void renewWhatIsReadLate();
  void readLate(const Instance& instance, const BackwardVariant& variant, std::size_t begin, std::size_t count);
  void refuseLateRead(BoundSymbolId reader, BoundSymbolId writer) const;

  // view_steps.cpp
  ValueId call(BoundSymbolId origin, std::string_view symbol, CallPattern pattern, std::vector<ValueId> tensors);
  ValueId call1(BoundSymbolId origin, std::string_view symbol, std::vector<Argument> literals, ValueId tensor);
  ValueId follow(BoundSymbolId origin, const ViewPath& path, ValueId base);
  ValueId applyView(BoundSymbolId origin, const ViewStep& step, ValueId base);
  ValueId scatterThrough(BoundSymbolId origin, const ViewPath& path, ValueId base, ValueId content, bool ownsMemory);
  ValueId flat(BoundSymbolId origin, ValueId tensor);
  ValueId withLaziness(BoundSymbolId op, ValueId tensor, const TensorMeta& like);
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
  struct Loop;
  void unroll(BoundSymbolId op, Loop loop);
  void runWhile(BoundSymbolId op, const Graphs& graphs, const Arguments& after);
  void applyWithEffects(BoundSymbolId op, const CallPattern& pattern);
  std::int64_t leadingSize(const std::vector<Binding>& stacked, std::string_view op) const;
  Binding bindingOf(BoundSymbolId op, const Argument& argument);
  std::vector<Binding> bindingsOf(BoundSymbolId op, const Argument& list);
  Binding select(BoundSymbolId op, const Binding& stacked, std::int64_t index);
  Binding stack(BoundSymbolId op, const std::vector<Binding>& slices);
  void copyResults(BoundSymbolId op, const std::vector<Binding>& arguments, std::vector<Binding>& results);
  Binding shallowCopy(BoundSymbolId op, const Binding& result);
  void bindResults(BoundSymbolId op, const std::vector<Binding>& results);
  bool truth(const Binding& predicate);

  // backward_replay.cpp
  void replayBackward();
  void seedCotangents();
  void replay(Instance& instance);
  void emitAsZero(const RuleOp& op, const BackwardVariant& variant, std::size_t forwardLocals, std::size_t begin,
                  std::vector<StorageId>& storages, const Origin& origin);
  void emitVariant(const Instance& instance, const BackwardVariant& variant, const std::vector<ValueId>& cotangents);

  Document& document_;
  const Computation& computation_;
  const TransformOptions& options_;
  const Progress& progress_;

  IdVector<ValueId, Binding> bindings_;  // of computation values
  std::vector<TensorState> tensors_;
  std::unordered_map<std::int32_t, ValueId>
      reshapedLeaves_;  // by family: the input that it is, reshaped under no_grad before a recorded op used it
  std::map<ValueId, ValueId> readLateAsBound_;  // what the keys of options_.readLate were when they were made
  bool tracksAliases_ = false;

  int decompositionDepth_ = 0;
  std::vector<Instance> instances_;

  std::vector<ValueId> outputs_, cotangents_;
  JointResult result_;

  RegionState region_;
  AliasFamilies aliases_;
  JointWriter writer_;
  RuleFinder rules_;
  GradientSums gradients_;
  ZeroTensors zeros_;
};

}  // namespace retrograd

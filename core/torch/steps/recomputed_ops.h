#pragma once
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/judge/claim.h"
#include "core/torch/steps/step_values.h"

namespace retrograd {

/// The op that begins the call of a custom Function which the op is within; any other is its own.
std::size_t functionBegin(const StepRecording& recording, const std::vector<BoundSymbolId>& ops, std::size_t position);

/// What a backward recomputed of its forward (checkpoints), paired with it op by op.
///
/// A reentrant checkpoint runs its forward without autograd, and the graph that the backward goes through is that of
/// the recomputation: there the recomputed op takes the place of its forward op, and its values stand for those of the
/// forward. Under the other kind the graph is that of the forward, on values that were recomputed.
class RecomputedOps {
 public:
  RecomputedOps(const Analysis& analysis, const StepValues& values, const BackwardSpan& span);

  /// The value of the forward that a recomputed one repeats; any other stands for itself.
  ValueId standsFor(ValueId value) const;
  /// The positions up to the end of the backward in the order of the graph: a recomputed op in the place of the forward
  /// op that autograd did not see, which is left out.
  const std::vector<std::size_t>& order() const { return order_; }
  /// Whether it is a recomputed op in the place of its forward op.
  bool takesPlace(std::size_t position) const { return inPlace_.contains(position); }
  /// Whether it stands for something of the forward that keeps its place.
  bool isRepeat(std::size_t position) const {
    return aliases_.contains(position) || (forwardOf_.contains(position) && !takesPlace(position));
  }
  /// What the op at `position` read and made as its backward saw it: recomputed, where it was. Null: not kept.
  const OpTensors* tensorsOf(std::size_t position) const;

  /// A recomputed op that gives other numbers than its forward op, though no op before it did, and whose numbers reach
  /// what the backward reads.
  struct Other {
    enum class Why : std::uint8_t { draws, overwritten, otherOps };
    Why why = Why::draws;
    BoundSymbolId forward, recomputed;  ///< `otherOps`: what the forward ran and the recomputation runs instead of it
    BoundSymbolId cause;                ///< `overwritten`: the op that wrote over what both read; none: not known
  };
  /// In the order of the recomputation.
  const std::vector<Other>& others() const { return others_; }
  /// What it says about one of them, with both lines.
  Claim claimOf(const Other& other) const;

 private:
  using Block = std::vector<std::size_t>;  ///< ops that were recomputed in one go

  std::vector<Block> findBlocks() const;
  void pair(const Block& block);
  void pairByValues(const Block& block, std::size_t place);
  void join(std::size_t forward, std::size_t recomputed);
  bool keepsPlace(std::size_t forward) const;
  void takePlaces();
  void putInOrder(const std::vector<Block>& blocks);
  void findOthers(const std::vector<Block>& blocks);
  bool isOtherThan(std::size_t forward, std::size_t recomputed) const;
  std::optional<Other> explain(std::size_t forward, std::size_t recomputed) const;
  std::optional<Other> atTheEnd(const Block& block, std::size_t place) const;
  bool isAnotherCall(const Block& block, std::size_t place) const;
  bool isAlias(const Block& block, std::size_t position) const;
  bool autogradSaw(const Block& block) const;
  void findReads();

  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const StepValues& values_;
  const BackwardSpan& span_;
  std::unordered_set<std::size_t> linked_;                                  ///< positions whose nodes ran ops
  std::unordered_map<std::size_t, std::vector<std::size_t>> recomputedAt_;  ///< by position of the forward
  std::unordered_map<std::size_t, std::size_t> forwardOf_;                  ///< by position of the recomputed op
  std::unordered_set<std::size_t> otherOp_;                                 ///< of the forward, repeated by another op
  std::unordered_map<std::size_t, std::size_t> inPlace_;                    ///< of these, those in its place
  std::unordered_set<std::size_t> aliases_;                                 ///< detached inputs of recomputations
  std::unordered_map<std::int32_t, ValueId> standsFor_;
  std::unordered_map<std::int32_t, at::Tensor> otherwise_;  ///< values of the forward that were recomputed otherwise
  std::unordered_map<std::size_t, std::unordered_set<std::int32_t>> reads_;  ///< of these, what backwards of ops read
  mutable std::unordered_map<std::size_t, OpTensors> mixed_;
  std::vector<std::size_t> order_;
  std::vector<Other> others_;
};

}  // namespace retrograd

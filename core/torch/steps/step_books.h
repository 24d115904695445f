#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/recording/recording.h"
#include "core/judge/claim.h"
#include "core/torch/session/run_follower.h"
#include "core/torch/steps/optimizer_updates.h"

namespace retrograd {

/// Claims of one kind that are alike but for the parameter: one claim with all of them.
class ClaimGroups {
 public:
  void add(Claim claim, const std::string& parameter);
  std::vector<Claim> take() { return std::move(claims_); }

 private:
  std::vector<Claim> claims_;
};

/// Whether an op of an accumulation copies the gradient to where ranks exchange it, as DistributedDataParallel does.
bool handsGradientOn(const Document& document, const StepRecording& recording, BoundSymbolId op);

/// Which parameters there are, and what loop and optimizers call their memory.
class StepMembers {
 public:
  explicit StepMembers(const Analysis& analysis);

  /// Null: the loop has no name for this memory.
  const RecordedName* nameOf(ValueId value) const;
  /// The parameter whose gradient this memory is when the op runs; empty: of none.
  const std::string& gradientOf(ValueId value) const;
  /// Whether an optimizer has it.
  bool isOptimized(const std::string& parameter) const { return optimized_.contains(parameter); }
  bool knowsOptimizers() const { return !optimized_.empty(); }
  /// Parameters with gradients that no optimizer has; optimizers whose parameters are not the model's, are frozen or
  /// unused.
  std::vector<Claim> claims() const;

 private:
  void claimForeign(std::vector<Claim>& claims) const;
  void claimWithoutGradient(std::vector<Claim>& claims) const;
  void claimUntrained(std::vector<Claim>& claims) const;
  Claim withoutGradient(const std::vector<std::string>& dead) const;

  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  std::unordered_map<StorageId, const RecordedName*> names_;
  std::unordered_map<StorageId, std::string> gradients_;
  std::set<std::string> optimized_, standFor_, read_, got_;
};

/// What becomes of each gradient: made by a backward, clipped, unscaled, read by an update, cleared, lost; in which
/// order. Follows a run for the numbers.
class GradientBooks final : public RunFollower {
 public:
  GradientBooks(const Analysis& analysis, const StepMembers& members);
  void ran(std::size_t position, const Evaluator& evaluator, const OpMeasure&) override;
  /// Once the run is over.
  std::vector<Claim> claims();

 private:
  struct Gradient {
    StorageId storage;
    std::int32_t backward = -1;   ///< the last that made a part of it
    BoundSymbolId made;           ///< the op of that
    std::int32_t usedIn = -1;     ///< the step whose update read it, since it was cleared; -1: none
    BoundSymbolId mixedAt;        ///< a backward added to it after an update had read it; none: none did
    std::int32_t mixedFrom = -1;  ///< the step of that update
    BoundSymbolId clipped;        ///< since its last part was made; none: it was not
    bool isOpen = false;          ///< a part of it was not read yet
    bool wasLookedAt = false;     ///< by clipping
  };
  struct Scaled {
    std::size_t position;  ///< of the op that unscaled
    BoundSymbolId clip;
    double scale = 0, factor = 0;
    std::vector<std::string> parameters;
  };
  struct Lost {
    std::string parameter;
    Gradient gradient;
    BoundSymbolId by;  ///< the op that took its place or cleared it; none: the recording ended
  };

  void visit(std::size_t position);
  void accumulate(std::size_t position, const std::string& parameter);
  void moves(std::size_t position);
  void clip(std::size_t position);
  void unscale(std::size_t position);
  void touch(std::size_t position);
  void loses(const std::string& parameter, BoundSymbolId by);
  void claimMixed(const std::string& parameter, const Gradient& gradient);
  void finish();
  std::string backwardLine(const Gradient& gradient) const;
  std::string lineOf(BoundSymbolId op) const { return recordedLine(document_, op); }

  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const StepMembers& members_;
  std::map<std::string, Gradient> open_;              ///< by parameter: its gradient now
  std::unordered_map<StorageId, std::string> owner_;  ///< of memory that is a gradient now
  std::set<std::string> gathered_;                    ///< parameters of which ranks have shards
  std::set<std::int32_t> usedBackwards_;              ///< of which an update read some gradient
  std::vector<Lost> lost_;
  std::vector<Scaled> scaled_;
  BoundSymbolId blindClip_;  ///< an op of clipping while no gradient was there
  bool clipSawGradient_ = false;
  std::set<std::string> usedTwice_;  ///< said of these
  ClaimGroups groups_;
};

/// Weights of an optimizer that something else writes, parameters that are equal and not tied, work that no backward
/// reaches, modules in eval, draws of dropout without gradient, statistics that are updated twice.
std::vector<Claim> writesOutside(const Analysis& analysis, const StepMembers& members);
std::vector<Claim> droppedWork(const Analysis& analysis, const StepMembers& members);
std::vector<Claim> modesOf(const Analysis& analysis, const StepMembers& members);
/// Updates along the gradient, and moments that begin at 0 late.
std::vector<Claim> oddUpdates(const OptimizerUpdates& updates);

/// Parameters that hold equal numbers as the step begins, and are apart.
class EqualParameters final : public RunFollower {
 public:
  explicit EqualParameters(const StepMembers& members) : members_(members) {}
  void begins(const std::vector<std::pair<ValueId, c10::IValue>>& given) override;
  void ran(std::size_t, const Evaluator&, const OpMeasure&) override {}
  std::vector<Claim> take() { return std::move(claims_); }

 private:
  const StepMembers& members_;
  std::vector<Claim> claims_;
};

}  // namespace retrograd

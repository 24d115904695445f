#pragma once
#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/base/progress.h"
#include "core/stepping/lifetimes.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/session/live_memory.h"
#include "core/torch/session/run_follower.h"

namespace retrograd {

class StorageCopies;

/// Contents of values all along a run, as far as it is known: positions [0, known()], position p being before the p-th
/// op of the trace. Any of them can be asked for, and a run can go back to each.
///
/// Nothing is copied but what ops write to in place, of which each version is kept. Beyond the budget, contents are let
/// go that others make again, the cheapest to make first: a content that is asked for takes the seconds of `longest()`
/// at most, as its ops were measured. Made again are single ops from what is kept, on copies of what they write and
/// from the generator's state that they had; that comes out bit for bit.
class KeptValues {
 public:
  using Bindings = std::vector<std::pair<ValueId, c10::IValue>>;

  /// `memory`: what the run itself holds; that costs nothing here, and is not let go.
  KeptValues(const Document& document, const Trace& trace, const Lifetimes& lifetimes, std::uint64_t seed,
             std::int64_t budget, LiveMemory& memory, std::shared_ptr<const LeftOut> leftOut = {});

  /// Forgets all contents, but not what was put in by hand. `given` is there from the start; no run writes to it.
  void start(const Bindings& given);
  std::size_t known() const { return known_; }
  /// False where the budget was too small even for what cannot be let go, or is zero: nothing is known then until the
  /// next start().
  bool keeps() const { return keeps_; }
  /// The op at known() has run. Returns whether something was copied. Where it throws for want of memory, known()
  /// stays.
  bool ran(const Evaluator& evaluator, double seconds);
  /// Lets go of what is more than the budget; to be called after ran() and edited(). Whether it keeps() still.
  bool fit();
  void setBudget(std::int64_t bytes);

  /// The value's memory is about to be written to by hand: what is kept of it becomes copies.
  void unshare(ValueId value);
  /// The content was put into it at the position. At known() it becomes a version of the value's memory, which must
  /// have been unshared.
  void edited(std::size_t position, const ValueEdit& edit, const Evaluator& evaluator);
  /// Whether it was put in there before: a run comes by once more.
  bool hasEdit(std::size_t position, const ValueEdit& edit) const;
  std::span<const ValueEdit> editsAt(std::size_t position) const;
  /// The first position after this one at which something was put in by hand; -1 is before all.
  std::optional<std::size_t> editAfter(std::ptrdiff_t position) const;
  /// Forgets what is known after the position; with `byHand` also what was put in by hand there and later.
  void forgetAfter(std::size_t position, bool byHand);

  /// Whether the value has a content at the position.
  bool isThere(ValueId value, std::size_t position) const { return versionAt(value, position) != nullptr; }
  /// Whether an op, or somebody by hand, put another content into it between the two positions.
  bool changes(ValueId value, std::size_t from, std::size_t to) const {
    return versionAt(value, from) != versionAt(value, to);
  }
  /// Contents at a position up to known(), made again where they were let go; None for what is not there. Throws
  /// Error(cancelled), Error(execution).
  std::vector<c10::IValue> contents(std::span<const ValueId> values, std::size_t position,
                                    const Progress& progress = {});
  /// An evaluator in the state that a run has at known(), on which it can go on.
  std::unique_ptr<Evaluator> evaluator(const Progress& progress = {});
  /// Brings the run, which is at known(), back to the position and forgets what is after it. Throws as contents(); the
  /// run is where it was then.
  void goBack(Evaluator& run, std::size_t position, const Progress& progress = {});
  /// Takes back what the op at known() wrote before it failed.
  void takeBack(Evaluator& run);

  /// Memory that nothing else holds; the generator's states, 5 KB a draw, are not counted.
  std::int64_t bytes() const { return memory_.keptBytes(); }
  /// Contents that were let go.
  std::size_t letGo() const { return letGo_; }
  double longest() const { return letGo_ > 0 ? limit_ : 0; }
  /// Ops that run again on one step back from known() or before, at most.
  std::size_t reruns() const;

 private:
  struct Version {
    std::size_t from = 0;  ///< the position since when
    bool byHand = false;
    bool isLetGo = false;
    c10::IValue content;
  };

  const Version* versionAt(ValueId value, std::size_t position) const;
  void keep(ValueId value, std::size_t from, bool byHand, c10::IValue content);
  void drop(Version& version);
  void forget();
  bool isSteady(ValueId value) const;
  bool addCopiesOfWritten(Bindings& made, BoundSymbolId op, const Evaluator& evaluator, StorageCopies& copies) const;
  std::vector<ValueId> touched(std::size_t first, std::size_t last) const;
  void addWritten(std::vector<ValueId>& values, BoundSymbolId op) const;
  void addEdited(std::vector<ValueId>& values, std::size_t position) const;
  std::vector<ValueId> aliveOf(std::span<const ValueId> values, std::size_t position, std::size_t& alive) const;
  void rebind(Evaluator& run, std::span<const ValueId> values, std::size_t position, const Progress& progress);
  void hold(ValueId value, const c10::IValue& content);
  const void* keyOf(ValueId value) const;
  c10::IValue ofRun(ValueId value, const c10::IValue& content, StorageCopies& copies) const;

  void lighten(std::int64_t enough);
  bool canGo(ValueId value) const;
  bool baseIsGone(ValueId value) const;

  std::vector<std::size_t> plan(std::span<const ValueId> values, std::size_t position) const;
  void runAgain(std::size_t position, std::vector<ValueId>& bound);
  const Evaluator::Generators& generatorsAt(std::size_t position) const {
    return std::prev(generators_.upper_bound(position))->second;
  }

  const Document& document_;
  const std::vector<BoundSymbolId>& ops_;
  const Lifetimes& lifetimes_;
  std::uint64_t seed_;
  std::shared_ptr<const LeftOut> leftOut_;  ///< as the evaluators have it
  std::int64_t budget_;
  bool keeps_ = false;
  std::size_t known_ = 0, work_ = 0;
  IdVector<ValueId, std::vector<Version>> versions_;
  IdVector<StorageId, char> given_, edited_;
  std::map<std::size_t, std::vector<ValueEdit>> edits_;      ///< by position
  std::map<std::size_t, Evaluator::Generators> generators_;  ///< by the position since when they are in this state
  std::vector<double> seconds_;
  LiveMemory& memory_;
  double limit_;
  std::size_t letGo_ = 0;
  std::unique_ptr<Evaluator> again_;  ///< runs ops again
};

}  // namespace retrograd

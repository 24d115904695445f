#pragma once
#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/base/progress.h"
#include "core/stepping/remake.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/session/live_memory.h"

namespace retrograd {

/// Contents of values all along a run, as far as it is known: positions [0, known()], position p being before the p-th
/// op of the trace.
///
/// Nothing is copied but what ops write to in place, of which each version is kept. Beyond the budget, contents are let
/// go that others make again, the cheapest to make first: a content that is asked for takes the seconds of `longest()`
/// at most, as its ops were measured. Made again are single ops from what is kept, on copies of what they write and
/// from the generator's state that they had; that comes out bit for bit.
class KeptValues {
 public:
  KeptValues(const Document& document, const Trace& trace, const Remaking& remaking, std::uint64_t seed,
             std::int64_t budget, std::shared_ptr<const LeftOut> leftOut = {});

  /// Forgets all. `given` is there from the start.
  void start(std::vector<std::pair<ValueId, c10::IValue>> given);
  std::size_t known() const { return known_; }
  /// The op at known() has run. False where the budget is too small even for what cannot be let go; all is forgotten
  /// then.
  bool ran(const Evaluator& evaluator, double seconds);
  /// The value's memory is about to be written to by hand: what is kept of it becomes copies.
  void unshare(ValueId value);
  /// Another content was put into it at known(). Its memory must have been unshared.
  void edited(ValueId value, const Evaluator& evaluator);
  /// Forgets what is after the position; with `byHand` also what was put in by hand at it.
  void forgetAfter(std::size_t position, bool byHand);
  bool setBudget(std::int64_t bytes);

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

  std::int64_t bytes() const { return memory_.bytes(); }
  /// Contents that were let go.
  std::size_t letGo() const { return letGo_; }
  double longest() const { return letGo_ > 0 ? limit_ : 0; }

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
  bool isExternal(ValueId value) const;
  bool isSteady(ValueId value) const;
  std::span<const ValueId> sharing(ValueId value) const;
  void keepWritten(BoundSymbolId op, const Evaluator& evaluator, class StorageCopies& copies);

  bool fit();
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
  const Remaking& remaking_;
  std::uint64_t seed_;
  std::shared_ptr<const LeftOut> leftOut_;  ///< as the evaluators have it
  std::int64_t budget_;
  std::size_t known_ = 0;
  IdVector<ValueId, std::vector<Version>> versions_;
  IdVector<StorageId, char> written_, edited_;
  IdVector<StorageId, std::vector<ValueId>> onStorage_;
  std::unordered_set<const void*> given_;  ///< memory that is there anyway
  std::vector<std::pair<ValueId, c10::IValue>> start_;
  std::map<std::size_t, Evaluator::Generators> generators_;  ///< by the position since when they are in this state
  std::vector<double> seconds_;
  LiveMemory memory_;
  double limit_;
  std::size_t letGo_ = 0;
  std::unique_ptr<Evaluator> again_;  ///< runs ops again
};

}  // namespace retrograd

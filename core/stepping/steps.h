#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/base/id_vector.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// Ways to step; `Back` undoes.
enum class Step : std::uint8_t {
  into,
  intoBack,  ///< one op
  over,
  overBack,  ///< all that comes of one op of the computation, be it a cond with all of its branch
  out,
  outBack  ///< to the end (the beginning) of what the position is inside
};

/// Of each op of a document its position in a run; -1 where it does not run.
using OpPositions = IdVector<BoundSymbolId, std::int32_t>;

/// Where steps lead to. A run's program is forward then backward; position p is before its p-th op. Each op is
/// within the computation op it comes from, that one within the higher-order op whose body holds it (a branch of cond),
/// and all within the forward or the backward. Where several of these begin at a position, a step
/// over passes the outermost; inside all of them it is one op. A region under autocast or no_grad, or one that is
/// checkpointed, is not an op to step over: its ops are stepped as if they were outside.
class Steps {
 public:
  /// Ops to stop before, on the way.
  using Stops = std::function<bool(BoundSymbolId)>;

  Steps() = default;
  explicit Steps(std::shared_ptr<const Analysis> analysis);

  std::size_t size() const { return forwardSize_ + backwardSize_; }
  std::size_t forwardSize() const { return forwardSize_; }
  /// Invalid at the end.
  BoundSymbolId opAt(std::size_t position) const;
  /// The position the step leads to, or an earlier one on the way there that `stops` names. At the end (the start) the
  /// same position.
  std::size_t goal(Step step, std::size_t from, const Stops& stops = {}) const;

 private:
  bool isRegion(BoundSymbolId op) const;
  std::vector<BoundSymbolId> around(std::size_t position) const;
  bool within(std::size_t position, BoundSymbolId outer) const;
  bool joined(std::size_t position, BoundSymbolId outer) const;
  std::size_t endOf(std::size_t position, BoundSymbolId outer) const;
  std::size_t beginOf(std::size_t position, BoundSymbolId outer) const;
  std::size_t wholeGoal(Step step, std::size_t from) const;

  std::shared_ptr<const Analysis> analysis_;
  std::size_t forwardSize_ = 0, backwardSize_ = 0;
};

}  // namespace retrograd

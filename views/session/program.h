#pragma once
#include <optional>
#include <set>

#include "core/debug/analysis.h"

namespace retrograd::views {

/// The ops of an analysis in order of execution: those of the forward, then those of the backward. Where steps lead to is
/// decided here, on the window's side, so that a key that repeats adds up to one goal.
class Program {
 public:
  Program() = default;
  explicit Program(std::shared_ptr<const Analysis> analysis);

  std::size_t size() const { return forwardSize_ + backwardSize_; }
  std::size_t forwardSize() const { return forwardSize_; }
  /// Invalid at the end.
  BoundSymbolId opAt(std::size_t position) const;
  /// Where the op runs; a computation op runs where its first forward op does.
  std::optional<std::size_t> positionOf(BoundSymbolId op) const;
  /// The op that a breakpoint on `op` stops at; invalid where it never runs.
  BoundSymbolId executed(BoundSymbolId op) const;

  /// Past the ops that come from the same computation op in the same direction, or to a breakpoint among them.
  std::size_t stepOver(std::size_t from, const std::set<BoundSymbolId>& breakpoints) const;
  std::size_t stepOverBack(std::size_t from, const std::set<BoundSymbolId>& breakpoints) const;

 private:
  bool sameGroup(std::size_t a, std::size_t b) const;

  std::shared_ptr<const Analysis> analysis_;
  std::size_t forwardSize_ = 0, backwardSize_ = 0;
  std::vector<std::int32_t> positions_;
};

}  // namespace retrograd::views

#pragma once
#include <optional>

#include "core/stepping/steps.h"

namespace retrograd::views {

/// The ops of an analysis in order of execution: those of the forward, then those of the backward, and where each one
/// runs. Where steps lead to is decided on the window's side, so that a key that repeats adds up to one goal.
class Program {
 public:
  Program() = default;
  explicit Program(std::shared_ptr<const Analysis> analysis);

  const Steps& steps() const { return steps_; }
  std::size_t size() const { return steps_.size(); }
  std::size_t forwardSize() const { return steps_.forwardSize(); }
  /// Invalid at the end.
  BoundSymbolId opAt(std::size_t position) const { return steps_.opAt(position); }
  /// Where the op runs; a computation op runs where its first forward op does.
  std::optional<std::size_t> positionOf(BoundSymbolId op) const;
  /// The op that a breakpoint on `op` stops at; invalid where it never runs.
  BoundSymbolId executed(BoundSymbolId op) const;
  /// Of each op of the document where it runs; -1 where it does not. Shared by those who ask of many ops.
  const std::shared_ptr<const OpPositions>& positions() const { return positions_; }

 private:
  std::shared_ptr<const Analysis> analysis_;
  Steps steps_;
  std::shared_ptr<const OpPositions> positions_;
};

}  // namespace retrograd::views

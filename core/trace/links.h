#pragma once
#include <span>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// The way from a computation op to all that was derived from it and back, each in O(1).
class OriginLinks {
 public:
  OriginLinks() = default;
  OriginLinks(const Document& document, const Trace& joint);

  /// Bound symbols of the joint (forward, then gradient, accumulation, ...) whose origin is this computation op, in
  /// order.
  std::span<const BoundSymbolId> derived(BoundSymbolId computationOp) const;
  /// The computation op a bound symbol comes from; itself for a computation op; none where the origin is a graph input.
  static BoundSymbolId origin(const Document& document, BoundSymbolId op);
  /// Where `G` jumps from a backward op: the first forward-role op of the joint with the same origin that computes
  /// something (of a linear its product, not the transposition before it), else the first of all; none if there is
  /// none.
  BoundSymbolId forwardOf(const Document& document, BoundSymbolId op) const;

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<BoundSymbolId> derived_;
};

}  // namespace retrograd

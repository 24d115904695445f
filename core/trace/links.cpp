#include "core/trace/links.h"

namespace retrograd {

OriginLinks::OriginLinks(const Document& document, const Trace& joint) {
  begin_.assign(document.boundSymbolCount() + 1, 0);
  for (auto op : joint.ops)
    if (auto from = document.boundSymbol(op).origin.op) ++begin_[from.index + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  derived_.resize(begin_.back());
  auto next = begin_;
  for (auto op : joint.ops)
    if (auto from = document.boundSymbol(op).origin.op) derived_[next[from.index]++] = op;
}

std::span<const BoundSymbolId> OriginLinks::derived(BoundSymbolId computationOp) const {
  if (!computationOp) return {};
  const std::size_t i = computationOp.index;
  if (i + 1 >= begin_.size()) return {};
  return {derived_.data() + begin_[i], begin_[i + 1] - begin_[i]};
}

BoundSymbolId OriginLinks::origin(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  return bound.origin.role == Role::none ? op : bound.origin.op;
}

BoundSymbolId OriginLinks::forwardOf(const Document& document, BoundSymbolId op) const {
  BoundSymbolId first;
  for (auto candidate : derived(origin(document, op))) {
    if (document.boundSymbol(candidate).origin.role != Role::forward) continue;
    if (!document.symbol(candidate).isView) return candidate;
    if (!first) first = candidate;
  }
  return first;
}

}  // namespace retrograd

#pragma once
#include <cstdint>
#include <span>

#include "core/base/id_vector.h"
#include "core/trace/document.h"

namespace retrograd {

/// Values that a forward keeps for its backward, and what that costs. Every view and every report takes its bytes from
/// here. Memory counts once, for the first of the values that lie in it; inputs, parameters and views of them are there
/// anyway and cost nothing.
struct SavedValues {
  IdVector<ValueId, bool> saved;
  IdVector<ValueId, std::int64_t> cost;  ///< bytes of the memory that counts for the value
  std::int64_t bytes = 0;                ///< of all
  std::size_t count = 0;                 ///< of values, those that cost nothing included

  bool contains(ValueId value) const { return saved.contains(value) && saved[value]; }
  std::int64_t costOf(ValueId value) const { return cost.contains(value) ? cost[value] : 0; }
};

/// `values`: what is kept; each may be named more than once, invalid ids are skipped. `ops`: those of the forward in
/// the order in which they run, which decides what is first. Linear.
SavedValues savedValues(const Document& document, std::span<const ValueId> values, std::span<const BoundSymbolId> ops);

}  // namespace retrograd

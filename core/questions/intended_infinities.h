#pragma once
#include <functional>

#include "core/base/tensor_statistics.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// Infinities that a program means: -inf written as a literal, as attention masks have it, or brought along by an input
/// or buffer, and what ops that only move, choose, add, scale or compare pass on of it, also through memory that they
/// write. Known from the trace alone, before anything ran (nan_walk.h knows more afterwards). An infinity anywhere
/// else, and every NaN, is a fault.
///
/// A parameter, a gradient or a cotangent is never meant to be infinite; an input or buffer is where it is a mask, so
/// that none of its numbers is above 0. An op that computes (exp, a product of matrices) passes nothing on: what
/// overflows there is a fault. The additions that put a mask on scores do, so that scores which overflow are found
/// where they are made, not there. Where one op makes the scores and adds the mask (baddbmm), the mask's operand alone
/// passes.
class IntendedInfinities {
 public:
  IntendedInfinities() = default;
  /// Linear in the trace. `brings`: whether an input or buffer may hold infinities, where more is known of it than its
  /// kind.
  explicit IntendedInfinities(const Analysis& analysis, const std::function<bool(ValueId)>& brings = {});

  bool mayHold(ValueId value) const { return values_.contains(value) && values_[value] != Meant::no; }
  /// Whether numbers of this value are what a person who looks for a NaN or Inf looks for.
  bool isFault(ValueId value, const TensorStatistics& statistics) const;

 private:
  enum class Meant : std::uint8_t { no, yes, asMask };
  IdVector<ValueId, Meant> values_;
};

/// Whether an infinity is written as a literal among the op's arguments.
bool hasInfiniteLiteral(const Document& document, BoundSymbolId op);

/// Whether what the op makes is memory that nobody has written yet, so that its numbers mean nothing.
bool leavesUninitialised(const Document& document, BoundSymbolId op);

}  // namespace retrograd

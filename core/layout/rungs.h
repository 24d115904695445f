#pragma once
#include <array>
#include <vector>

#include "core/base/enum_array.h"
#include "core/trace/trace.h"

namespace retrograd::layout {

/// The side of the ladder on which an op is: the forward goes down on the left, the backward comes up on the right.
enum class Lane : std::uint8_t { forward, backward };
inline constexpr std::size_t laneCount = 2;
inline constexpr std::array bothLanes{Lane::forward, Lane::backward};
/// One entry for each lane.
template <class T>
using LaneArray = EnumArray<Lane, T, laneCount>;

/// A row of the ladder: an instance of a computation op with all that it became, forward and backward.
///
/// That a backward op is in the row of its origin is so by construction: it is put into the rung of its origin
/// here, and nothing afterwards takes a rung apart.
struct Rung {
  BoundSymbolId operation;                    ///< computation op; none for ops that come from none
  StringId module;                            ///< path
  LaneArray<std::vector<BoundSymbolId>> ops;  ///< by lane, in order of execution
};

/// The rungs of a trace in order of the forward. A trace other than the joint has one lane, the first.
///
/// A backward op without an origin op (the sum of a parameter's gradients) is with what it sums last. An op that a
/// loop runs several times has a rung for each iteration; the backward ops of the iterations are dealt out to them from
/// the last to the first.
std::vector<Rung> rungsOf(const Document& document, const Trace& trace);

}  // namespace retrograd::layout

#pragma once
#include <cstddef>
#include <cstdint>

namespace retrograd {

/// Loops of a file (scan, map, while_loop) are unrolled, so their length is limited: more steps than this are refused,
/// in derivation and in eager runs. A while_loop whose condition never becomes false ends here.
constexpr std::int64_t mostLoopSteps = 100'000;
/// Ops that one loop may unroll to: some 2 GB of trace.
constexpr std::size_t mostLoopOps = 4'000'000;

}  // namespace retrograd

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace retrograd {

/// A place of the left sequence and one of the right.
using Match = std::pair<std::int32_t, std::int32_t>;

/// Common elements of two sequences of tokens: matches rise on both sides. Tokens that are once on both sides anchor
/// (patience diff); a stretch without anchors gets its longest common subsequence where it is short or has few edits
/// (Myers, "An O(ND) difference algorithm", 1986), or else the first, second, ... of each token on both sides. O(n log
/// n) with a bound on the edits sought, and the same answer every time.
std::vector<Match> alignTokens(std::span<const std::int32_t> left, std::span<const std::int32_t> right);

/// Indices of a longest strictly rising subsequence. O(n log n).
std::vector<std::int32_t> longestRising(std::span<const std::int32_t> numbers);

}  // namespace retrograd

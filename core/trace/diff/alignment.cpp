#include "core/trace/diff/alignment.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

namespace retrograd {
namespace {

constexpr std::size_t exactCells = 256 * 256;
constexpr std::size_t mostEdits = 512, mostSteps = std::size_t{1} << 25;
constexpr int mostLevels = 12;  // of anchors between anchors: bounds the time where few tokens match

using Tokens = std::span<const std::int32_t>;

class Aligner {
 public:
  std::vector<Match> take() { return std::move(matches_); }

  /// Matches of two stretches that begin at `i` and `j` of the whole, in order.
  void align(Tokens left, Tokens right, std::int32_t i, std::int32_t j, int level) {
    std::size_t head = 0, tail = 0;
    const auto shorter = std::min(left.size(), right.size());
    while (head < shorter && left[head] == right[head]) ++head;
    while (tail < shorter - head && left[left.size() - 1 - tail] == right[right.size() - 1 - tail]) ++tail;
    add(head, i, j);
    const auto leftMiddle = left.subspan(head, left.size() - head - tail),
               rightMiddle = right.subspan(head, right.size() - head - tail);
    const auto at = static_cast<std::int32_t>(head);
    if (!leftMiddle.empty() && !rightMiddle.empty()) {
      if (leftMiddle.size() * rightMiddle.size() <= exactCells) exact(leftMiddle, rightMiddle, i + at, j + at);
      else if (level < mostLevels) anchored(leftMiddle, rightMiddle, i + at, j + at, level);
    }
    add(tail, i + static_cast<std::int32_t>(left.size() - tail), j + static_cast<std::int32_t>(right.size() - tail));
  }

 private:
  void add(std::size_t count, std::int32_t i, std::int32_t j) {
    for (std::size_t k = 0; k < count; ++k) matches_.emplace_back(i++, j++);
  }

  /// The longest common subsequence; of several the one that matches as early as it can on the left.
  void exact(Tokens left, Tokens right, std::int32_t i, std::int32_t j) {
    const auto width = right.size() + 1;
    std::vector<std::uint16_t> longest((left.size() + 1) * width,
                                       0);  // of what is behind: at most 256 x 256 cells, or one side has one token
    for (auto a = left.size(); a-- > 0;)
      for (auto b = right.size(); b-- > 0;)
        longest[a * width + b] = left[a] == right[b]
                                     ? static_cast<std::uint16_t>(longest[(a + 1) * width + b + 1] + 1)
                                     : std::max(longest[(a + 1) * width + b], longest[a * width + b + 1]);
    for (std::size_t a = 0, b = 0; a < left.size() && b < right.size();) {
      if (left[a] == right[b]) {
        add(1, i + static_cast<std::int32_t>(a++), j + static_cast<std::int32_t>(b++));
      } else if (longest[a * width + b + 1] >= longest[(a + 1) * width + b]) {
        ++b;
      } else {
        ++a;
      }
    }
  }

  /// Myers' greedy search: the farthest place on each diagonal with a number of edits, until the end is reached. False
  /// where it takes too many.
  bool fewEdits(Tokens left, Tokens right, std::int32_t i, std::int32_t j) {
    const auto n = static_cast<std::int32_t>(left.size()), m = static_cast<std::int32_t>(right.size());
    const auto most = static_cast<std::int32_t>(std::min(mostEdits, mostSteps / (left.size() + right.size())));
    if (std::abs(n - m) > most) return false;
    std::vector<std::vector<std::int32_t>> farthest;  // by edits, then diagonal -edits .. edits: place on the left
    const auto reached = [&](std::int32_t edits, std::int32_t diagonal) -> std::int32_t& {
      return farthest[edits][diagonal + edits];
    };
    /// Whether the way to this diagonal drops a token of the left; else it inserts one of the right.
    const auto drops = [&](std::int32_t edits, std::int32_t diagonal) {
      return diagonal == edits ||
             (diagonal != -edits && reached(edits - 1, diagonal - 1) >= reached(edits - 1, diagonal + 1));
    };
    const auto begin = [&](std::int32_t edits, std::int32_t diagonal) {
      if (edits == 0) return 0;
      return drops(edits, diagonal) ? reached(edits - 1, diagonal - 1) + 1 : reached(edits - 1, diagonal + 1);
    };
    for (std::int32_t edits = 0; edits <= most; ++edits) {
      farthest.emplace_back(2 * edits + 1, 0);
      for (auto diagonal = -edits; diagonal <= edits; diagonal += 2) {
        auto x = begin(edits, diagonal);
        while (x >= 0 && x < n && x - diagonal >= 0 && x - diagonal < m && left[x] == right[x - diagonal]) ++x;
        reached(edits, diagonal) = x;
        if (diagonal != n - m || x < n) continue;
        std::vector<Match> backwards;
        for (auto at = diagonal, e = edits; e >= 0; --e) {
          for (auto from = begin(e, at), k = reached(e, at); k > from; --k)
            backwards.emplace_back(i + k - 1, j + k - 1 - at);
          if (e > 0) at += drops(e, at) ? -1 : 1;
        }
        matches_.insert(matches_.end(), backwards.rbegin(), backwards.rend());
        return true;
      }
    }
    return false;
  }

  void anchored(Tokens left, Tokens right, std::int32_t i, std::int32_t j, int level) {
    auto anchors = anchorsOf(left, right, true);
    if (anchors.empty()) {
      if (fewEdits(left, right, i, j)) return;
      anchors = anchorsOf(left, right, false);
    }
    std::size_t a = 0, b = 0;
    const auto between = [&](std::size_t toA, std::size_t toB) {
      if (!anchors.empty())
        align(left.subspan(a, toA - a), right.subspan(b, toB - b), i + static_cast<std::int32_t>(a),
              j + static_cast<std::int32_t>(b), level + 1);
    };
    for (const auto& [x, y] : anchors) {
      between(x, y);
      add(1, i + x, j + y);
      a = x + 1;
      b = y + 1;
    }
    between(left.size(), right.size());
  }

  /// Tokens that are once on both sides; or else the k-th of a token with the k-th on the other side. Those that rise
  /// on both sides.
  static std::vector<Match> anchorsOf(Tokens left, Tokens right, bool onlyUnique) {
    std::unordered_map<std::int32_t, std::vector<std::int32_t>> places;
    for (std::size_t b = 0; b < right.size(); ++b) places[right[b]].push_back(static_cast<std::int32_t>(b));
    std::unordered_map<std::int32_t, std::size_t> met;
    for (auto token : left) ++met[token];
    std::vector<Match> candidates;
    std::unordered_map<std::int32_t, std::size_t> nth;
    for (std::size_t a = 0; a < left.size(); ++a) {
      const auto found = places.find(left[a]);
      if (found == places.end()) continue;
      if (onlyUnique && (found->second.size() != 1 || met[left[a]] != 1)) continue;
      if (const auto n = nth[left[a]]++; n < found->second.size())
        candidates.emplace_back(static_cast<std::int32_t>(a), found->second[n]);
    }
    std::vector<std::int32_t> there;
    for (const auto& match : candidates) there.push_back(match.second);
    std::vector<Match> rising;
    for (auto k : longestRising(there)) rising.push_back(candidates[k]);
    return rising;
  }

  std::vector<Match> matches_;
};

}  // namespace

std::vector<Match> alignTokens(std::span<const std::int32_t> left, std::span<const std::int32_t> right) {
  Aligner aligner;
  aligner.align(left, right, 0, 0, 0);
  return aligner.take();
}

std::vector<std::int32_t> longestRising(std::span<const std::int32_t> numbers) {
  std::vector<std::int32_t> ends;  // index of the least end of a rising run of each length
  std::vector<std::int32_t> before(numbers.size(), -1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto place = std::lower_bound(ends.begin(), ends.end(), numbers[i],
                                        [&](std::int32_t end, std::int32_t number) { return numbers[end] < number; });
    if (place != ends.begin()) before[i] = *(place - 1);
    if (place == ends.end()) ends.push_back(static_cast<std::int32_t>(i));
    else *place = static_cast<std::int32_t>(i);
  }
  std::vector<std::int32_t> rising;
  for (auto at = ends.empty() ? -1 : ends.back(); at >= 0; at = before[at]) rising.push_back(at);
  std::reverse(rising.begin(), rising.end());
  return rising;
}

}  // namespace retrograd

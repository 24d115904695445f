#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "core/layout/layering.h"

namespace retrograd::layout {
namespace {

using Slots = std::vector<std::int32_t>;

std::uint64_t pairOf(std::int32_t a, std::int32_t b) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(std::min(a, b))) << 32) |
         static_cast<std::uint32_t>(std::max(a, b));
}

/// Edges that cross a passage of a long edge: they give way, so that long edges stay straight.
std::unordered_set<std::uint64_t> conflicts(const Layering& layering, const Slots& position) {
  std::unordered_set<std::uint64_t> found;
  for (std::size_t r = 1; r < layering.rows.size(); ++r) {
    const auto& row = layering.rows[r];
    std::int32_t leftmost = 0;
    std::size_t scanned = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::int32_t inner = -1;
      if (layering.isPassage(row[i]))
        for (auto up : layering.above[row[i]])
          if (layering.isPassage(up)) inner = position[up];
      if (inner < 0 && i + 1 < row.size()) continue;
      const auto rightmost = inner >= 0 ? inner : std::numeric_limits<std::int32_t>::max();
      for (; scanned <= i; ++scanned)
        for (auto up : layering.above[row[scanned]]) {
          const bool isInner = layering.isPassage(up) && layering.isPassage(row[scanned]);
          if (!isInner && (position[up] < leftmost || position[up] > rightmost)) found.insert(pairOf(up, row[scanned]));
        }
      leftmost = inner >= 0 ? inner : leftmost;
    }
  }
  return found;
}

/// One of the four: rows from above or from below, slots from the left or from the right.
class Alignment {
 public:
  Alignment(const Layering& layering, const std::vector<float>& width, float gap,
            const std::unordered_set<std::uint64_t>& conflicts, bool up, bool left)
      : layering_(layering),
        width_(width),
        gap_(gap),
        conflicts_(conflicts),
        near_(up ? layering.above : layering.below),
        rows_(layering.rows),
        left_(left) {
    if (!up) std::reverse(rows_.begin(), rows_.end());
    if (!left)
      for (auto& row : rows_) std::reverse(row.begin(), row.end());
    position_.assign(layering.slots(), 0);
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) position_[row[i]] = static_cast<std::int32_t>(i);
  }

  std::vector<float> run() {
    align();
    auto x = compact();
    if (!left_)
      for (auto& value : x) value = -value;
    return x;
  }

 private:
  void align() {
    root_.resize(layering_.slots());
    std::iota(root_.begin(), root_.end(), 0);
    auto next = root_;
    Slots near;
    for (const auto& row : rows_) {
      std::int32_t taken = -1;
      for (auto slot : row) {
        near = near_[slot];
        if (near.empty()) continue;
        std::sort(near.begin(), near.end(), [&](auto a, auto b) { return position_[a] < position_[b]; });
        for (auto m = (near.size() - 1) / 2; m <= near.size() / 2; ++m) {
          const auto other = near[m];
          if (next[slot] != slot || taken >= position_[other] || conflicts_.contains(pairOf(slot, other))) continue;
          next[other] = slot;
          root_[slot] = root_[other];
          next[slot] = root_[slot];
          taken = position_[other];
        }
      }
    }
  }

  float separation(std::int32_t a, std::int32_t b) const {
    const bool passage = layering_.isPassage(a) || layering_.isPassage(b);
    return (width_[a] + width_[b]) / 2 + (passage ? gap_ / 3 : gap_);
  }

  struct Neighbour {
    std::int32_t block;
    float distance;
  };

  /// Blocks as far to the left as they go, then as far to the right as what is right of them lets them.
  std::vector<float> compact() {
    const std::size_t n = layering_.slots();
    std::vector<std::vector<Neighbour>> right(n);
    std::vector<std::int32_t> waiting(n, 0);
    for (const auto& row : rows_)
      for (std::size_t i = 1; i < row.size(); ++i) {
        const auto a = root_[row[i - 1]], b = root_[row[i]];
        right[a].push_back({b, separation(row[i - 1], row[i])});
        ++waiting[b];
      }
    std::vector<std::int32_t> order;
    order.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
      if (root_[i] == static_cast<std::int32_t>(i) && waiting[i] == 0) order.push_back(static_cast<std::int32_t>(i));
    std::vector<float> x(n, 0);
    for (std::size_t k = 0; k < order.size(); ++k)
      for (const auto& [block, distance] : right[order[k]]) {
        x[block] = std::max(x[block], x[order[k]] + distance);
        if (--waiting[block] == 0) order.push_back(block);
      }
    for (auto k = order.size(); k-- > 0;) {
      auto limit = std::numeric_limits<float>::max();
      for (const auto& [block, distance] : right[order[k]]) limit = std::min(limit, x[block] - distance);
      if (limit != std::numeric_limits<float>::max()) x[order[k]] = std::max(x[order[k]], limit);
    }
    for (std::size_t i = 0; i < n; ++i) x[i] = x[root_[i]];
    return x;
  }

  const Layering& layering_;
  const std::vector<float>& width_;
  float gap_;
  const std::unordered_set<std::uint64_t>& conflicts_;
  const std::vector<Slots>& near_;
  std::vector<Slots> rows_;
  bool left_;
  Slots position_, root_;
};

struct Extent {
  float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();
  float width() const { return high - low; }
};

}  // namespace

std::vector<float> placeSlots(const Layering& layering, const std::vector<float>& width, float gap) {
  const std::size_t n = layering.slots();
  Slots position(n, 0);
  for (const auto& row : layering.rows)
    for (std::size_t i = 0; i < row.size(); ++i) position[row[i]] = static_cast<std::int32_t>(i);
  const auto giveWay = conflicts(layering, position);
  std::array<std::vector<float>, 4> all;
  std::array<Extent, 4> extents;
  std::size_t narrowest = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    all[k] = Alignment(layering, width, gap, giveWay, k < 2, k % 2 == 0).run();
    for (std::size_t i = 0; i < n; ++i) {
      extents[k].low = std::min(extents[k].low, all[k][i] - width[i] / 2);
      extents[k].high = std::max(extents[k].high, all[k][i] + width[i] / 2);
    }
    if (extents[k].width() < extents[narrowest].width()) narrowest = k;
  }
  std::array<float, 4> shift{};
  for (std::size_t k = 0; k < all.size(); ++k)
    shift[k] = k % 2 == 0 ? extents[narrowest].low - extents[k].low : extents[narrowest].high - extents[k].high;
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::array<float, 4> candidates{};
    for (std::size_t k = 0; k < all.size(); ++k) candidates[k] = all[k][i] + shift[k];
    std::sort(candidates.begin(), candidates.end());
    x[i] = (candidates[1] + candidates[2]) / 2;
  }
  return x;
}

}  // namespace retrograd::layout

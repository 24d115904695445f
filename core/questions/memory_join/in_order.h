#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace retrograd {

/// Pairs of two sequences that run in the order of both and weigh most together. Looks at a band of the second sequence
/// that follows the best pairs so far, so that the cost is linear in the first.
class InOrder {
 public:
  /// `weight(i, j)`: how well the i-th of `firsts` things fits the j-th of `seconds`; 0: not at all.
  template <class Weight>
  static std::vector<std::int32_t> pairs(std::size_t firsts, std::size_t seconds, const Weight& weight) {
    return InOrder(firsts, seconds).run(weight);
  }

 private:
  enum Step : std::uint8_t { skipsFirst, skipsSecond, takesBoth };
  static constexpr std::size_t mostCells = std::size_t{1} << 25, leastBand = 128, mostBand = 1024;

  InOrder(std::size_t firsts, std::size_t seconds)
      : firsts_(firsts),
        seconds_(seconds),
        band_(std::min(seconds, std::clamp(mostCells / std::max<std::size_t>(firsts, 1), leastBand, mostBand))) {}

  template <class Weight>
  std::vector<std::int32_t> run(const Weight& weight) {
    starts_.assign(firsts_ + 1, 0);
    steps_.assign((firsts_ + 1) * (band_ + 1), skipsSecond);
    sums_.assign(band_ + 1, 0);
    std::vector<std::int64_t> before;
    for (std::size_t i = 1; i <= firsts_; ++i) {
      before.swap(sums_);
      sums_.assign(band_ + 1, 0);
      starts_[i] = nextStart(i, before);
      for (std::size_t k = 0; k <= band_; ++k) fill(i, k, before, weight);
    }
    return back();
  }

  /// The band begins half its width before the first place at which the sum is as large as it gets.
  std::size_t nextStart(std::size_t i, const std::vector<std::int64_t>& before) const {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(before) - before.begin());
    const auto at = starts_[i - 1] + best;
    const auto wanted = at > band_ / 2 ? at - band_ / 2 : 0;
    return std::min(std::max(starts_[i - 1], wanted), seconds_ - band_);
  }

  template <class Weight>
  void fill(std::size_t i, std::size_t k, const std::vector<std::int64_t>& before, const Weight& weight) {
    const auto j = starts_[i] + k, shift = starts_[i] - starts_[i - 1];
    const auto above = before[std::min(k + shift, band_)];
    auto sum = above;
    auto step = skipsFirst;
    if (k > 0 && sums_[k - 1] > sum) sum = sums_[k - 1], step = skipsSecond;
    if (j > 0 && k + shift > 0 && k + shift - 1 <= band_)
      if (const std::int64_t weighs = weight(i - 1, j - 1); weighs > 0 && before[k + shift - 1] + weighs > sum)
        sum = before[k + shift - 1] + weighs, step = takesBoth;
    sums_[k] = sum;
    steps_[i * (band_ + 1) + k] = step;
  }

  std::vector<std::int32_t> back() const {
    std::vector<std::int32_t> pairs(firsts_, -1);
    auto i = firsts_, j = seconds_ == 0 ? 0 : starts_[firsts_] + band_;
    while (i > 0 && j > 0) {
      j = std::min(j, starts_[i] + band_);
      if (j < starts_[i]) break;
      const auto step = steps_[i * (band_ + 1) + j - starts_[i]];
      if (step == takesBoth) pairs[i - 1] = static_cast<std::int32_t>(j - 1);
      if (step != skipsSecond) --i;
      if (step != skipsFirst) --j;
    }
    return pairs;
  }

  std::size_t firsts_, seconds_, band_;
  std::vector<std::size_t> starts_;  // of the band, at each of the first sequence
  std::vector<Step> steps_;
  std::vector<std::int64_t> sums_;
};

}  // namespace retrograd

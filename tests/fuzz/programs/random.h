#pragma once
#include <cstdint>
#include <vector>

namespace retrograd::fuzz {

/// splitmix64: the same numbers on every machine, and a state that costs nothing to make.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    auto z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [0, n); 0 where n is 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }
  /// In [least, greatest].
  std::int64_t between(std::int64_t least, std::int64_t greatest) {
    return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(greatest - least + 1)));
  }
  bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability; }
  template <class T>
  const T& of(const std::vector<T>& items) {
    return items[below(items.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace retrograd::fuzz

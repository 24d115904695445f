#pragma once
#include <cassert>
#include <cstddef>

namespace retrograd {

/// One entry for each enumerator of an enum that counts from 0: names, signs, sums by lane. Only the enum indexes it.
/// Written as an array is: `EnumArray<Lane, int, 2> counts{};`
template <class Enum, class T, std::size_t Size>
struct EnumArray {
  T entries[Size];

  constexpr T& operator[](Enum e) {
    assert(static_cast<std::size_t>(e) < Size);
    return entries[static_cast<std::size_t>(e)];
  }
  constexpr const T& operator[](Enum e) const {
    assert(static_cast<std::size_t>(e) < Size);
    return entries[static_cast<std::size_t>(e)];
  }

  constexpr void fill(const T& entry) {
    for (auto& each : entries) each = entry;
  }
  constexpr std::size_t size() const { return Size; }
  constexpr T* begin() { return entries; }
  constexpr T* end() { return entries + Size; }
  constexpr const T* begin() const { return entries; }
  constexpr const T* end() const { return entries + Size; }
  bool operator==(const EnumArray&) const = default;
};

}  // namespace retrograd

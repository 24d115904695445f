#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace retrograd {

/// Finds texts by their hashes: of a table of texts that lies elsewhere, the position of each, in eight bytes of one
/// block of memory. A document of a million ops has millions of names, each of which is looked up several times.
class HashIndex {
 public:
  static std::uint32_t hashOf(std::string_view text) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>()(text));
  }

  /// The position of the text with this hash for which `isIt(position)` is true; -1: none.
  template <class IsIt>
  std::int32_t find(std::uint32_t hash, const IsIt& isIt) const {
    if (slots_.empty()) return -1;
    auto at = hash & mask();
    while (slots_[at].position >= 0 && (slots_[at].hash != hash || !isIt(slots_[at].position))) at = (at + 1) & mask();
    return slots_[at].position;
  }

  /// Adds a text that it has not.
  void add(std::uint32_t hash, std::int32_t position) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    put({hash, position});
    ++count_;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t position = -1;
  };

  std::size_t mask() const { return slots_.size() - 1; }

  void put(Slot slot) {
    auto at = slot.hash & mask();
    while (slots_[at].position >= 0) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const auto& slot : old)
      if (slot.position >= 0) put(slot);
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them taken
  std::size_t count_ = 0;
};

}  // namespace retrograd

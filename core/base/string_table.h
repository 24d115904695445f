#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"

namespace retrograd {

/// Strings kept once, by id. A copy is independent of its original.
class StringTable {
 public:
  StringId intern(std::string_view text) {
    if (2 * (strings_.size() + 1) > slots_.size()) grow();
    const auto hash = hashOf(text);
    auto& slot = slots_[placeOf(text, hash)];
    if (!slot.id) {
      slot = {hash, StringId(static_cast<std::int64_t>(strings_.size()))};
      strings_.emplace_back(text);
    }
    return slot.id;
  }

  /// `base`, or where that is taken `base_1`, `base_2`, ...
  StringId internUnique(const std::string& base) {
    if (!contains(base)) return intern(base);
    for (int& suffix = nextSuffix_[base];;) {
      const auto candidate = base + "_" + std::to_string(++suffix);
      if (!contains(candidate)) return intern(candidate);
    }
  }

  std::size_t size() const { return strings_.size(); }
  bool contains(std::string_view text) const { return !slots_.empty() && slots_[placeOf(text, hashOf(text))].id; }
  std::string_view text(StringId id) const { return id ? std::string_view(strings_[id.index]) : std::string_view(); }

  std::size_t bytes() const {
    std::size_t total = 0;
    for (const auto& s : strings_) total += sizeof(s) + s.capacity();  // NOLINT(bugprone-sizeof-container): the object and its memory
    return total;
  }

 private:
  /// A document of a million ops has millions of names, each of which is looked up: eight bytes for one, in one block of memory.
  struct Slot {
    std::uint32_t hash = 0;
    StringId id;
  };

  static std::uint32_t hashOf(std::string_view text) { return static_cast<std::uint32_t>(std::hash<std::string_view>()(text)); }

  /// Where the string is, or would be.
  std::size_t placeOf(std::string_view text, std::uint32_t hash) const {
    const auto mask = slots_.size() - 1;
    auto at = hash & mask;
    while (slots_[at].id && (slots_[at].hash != hash || strings_[slots_[at].id.index] != text)) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 16 : 2 * slots_.size());
    const auto mask = larger.size() - 1;
    for (const auto& slot : slots_) {
      if (!slot.id) continue;
      auto at = slot.hash & mask;
      while (larger[at].id) at = (at + 1) & mask;
      larger[at] = slot;
    }
    slots_.swap(larger);
  }

  std::deque<std::string> strings_;  // which never moves them: what text() gave stays good
  std::vector<Slot> slots_;          // a power of two of them, at most half of them taken
  std::unordered_map<std::string, int> nextSuffix_;
};

}  // namespace retrograd

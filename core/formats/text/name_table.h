#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace retrograd::text {

/// What names mean, in one block of memory: a text of a hundred thousand ops has several hundred thousand names, each of which is looked up several times. The
/// names must stay where they are.
template <class Meaning>
class NameTable {
 public:
  /// Null where it has none. Good until the next insert().
  const Meaning* find(std::string_view name) const {
    if (slots_.empty()) return nullptr;
    const auto& slot = slots_[placeOf(name, hashOf(name))];
    return slot.isTaken ? &slot.meaning : nullptr;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }

  struct Place {
    Meaning& meaning;
    bool isNew;
  };
  /// The meaning that the name has; a new one has this one from now on.
  Place insert(std::string_view name, Meaning meaning = {}) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    const auto hash = hashOf(name);
    auto& slot = slots_[placeOf(name, hash)];
    if (slot.isTaken) return {slot.meaning, false};
    slot = {name, hash, true, std::move(meaning)};
    ++count_;
    return {slot.meaning, true};
  }

 private:
  struct Slot {
    std::string_view name;
    std::uint32_t hash = 0;
    bool isTaken = false;
    Meaning meaning{};
  };

  static std::uint32_t hashOf(std::string_view name) { return static_cast<std::uint32_t>(std::hash<std::string_view>()(name)); }

  /// Where the name is, or would be.
  std::size_t placeOf(std::string_view name, std::uint32_t hash) const {
    const auto mask = slots_.size() - 1;
    auto at = hash & mask;
    while (slots_[at].isTaken && (slots_[at].hash != hash || slots_[at].name != name)) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (auto& slot : old)
      if (slot.isTaken) slots_[placeOf(slot.name, slot.hash)] = std::move(slot);
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them taken
  std::size_t count_ = 0;
};

}  // namespace retrograd::text

#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace retrograd {

/// A number for each of some addresses, in one block of memory: a history asks for millions of them.
class AddressMap {
 public:
  static constexpr std::int32_t none = -1;

  std::int32_t find(std::uint64_t address) const {
    if (slots_.empty()) return none;
    for (auto at = home(address);; at = (at + 1) & mask()) {
      if (slots_[at].number == none) return none;
      if (slots_[at].address == address) return slots_[at].number;
    }
  }
  /// The address must not be there yet.
  void add(std::uint64_t address, std::int32_t number) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    put({address, number});
    ++count_;
  }
  void remove(std::uint64_t address) {
    if (slots_.empty()) return;
    auto at = home(address);
    while (slots_[at].number != none && slots_[at].address != address) at = (at + 1) & mask();
    if (slots_[at].number == none) return;
    --count_;
    // Those behind it that it kept from their place move up.
    for (auto next = (at + 1) & mask(); slots_[next].number != none; next = (next + 1) & mask()) {
      const auto wanted = home(slots_[next].address);
      if (((next - wanted) & mask()) < ((next - at) & mask())) continue;
      slots_[at] = slots_[next];
      at = next;
    }
    slots_[at].number = none;
  }
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    std::uint64_t address = 0;
    std::int32_t number = none;
  };

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t home(std::uint64_t address) const { return (address * 0x9e3779b97f4a7c15ULL >> 32) & mask(); }
  void put(Slot slot) {
    auto at = home(slot.address);
    while (slots_[at].number != none) at = (at + 1) & mask();
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const auto& slot : old)
      if (slot.number != none) put(slot);
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them taken
  std::size_t count_ = 0;
};

}  // namespace retrograd

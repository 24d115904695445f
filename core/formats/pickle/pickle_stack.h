#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/base/error.h"

namespace retrograd {

/// The stack of a pickle's machine with its marks. `Item` is what the machine keeps of a value. Throws Error(badInput)
/// where an opcode takes what is not there; values below the last mark are not.
template <class Item>
class PickleStack {
 public:
  std::size_t size() const { return items_.size(); }
  std::size_t marks() const { return marks_.size(); }

  void push(Item item) { items_.push_back(item); }
  void mark() { marks_.push_back(items_.size()); }
  Item& top() {
    if (items_.empty()) badInput("pickle: its stack runs empty");
    return items_.back();
  }
  Item take() {
    if (items_.empty() || (!marks_.empty() && items_.size() <= marks_.back())) badInput("pickle: its stack runs empty");
    const auto top = items_.back();
    items_.pop_back();
    return top;
  }
  /// What lies above the last mark, which goes; good until the next call.
  std::span<const Item> takeToMark() {
    if (marks_.empty()) badInput("pickle: a mark is missing");
    const auto begin = items_.begin() + marks_.back();
    marks_.pop_back();
    taken_.assign(begin, items_.end());
    items_.erase(begin, items_.end());
    return taken_;
  }

 private:
  std::vector<Item> items_, taken_;
  std::vector<std::size_t> marks_;
};

}  // namespace retrograd

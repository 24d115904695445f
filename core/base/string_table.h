#pragma once
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/ids.h"

namespace retrograd {

/// Strings kept once, by id. A copy is independent of its original.
class StringTable {
 public:
  StringTable() = default;
  StringTable(const StringTable& other) : strings_(other.strings_), nextSuffix_(other.nextSuffix_) { index(); }
  StringTable& operator=(const StringTable& other) {
    if (this != &other) *this = StringTable(other);
    return *this;
  }
  StringTable(StringTable&&) = default;  // NOLINT(performance-noexcept-move-constructor): a deque allocates when it is moved
  StringTable& operator=(StringTable&&) = default;

  StringId intern(std::string_view text) {
    if (auto it = index_.find(text); it != index_.end()) return it->second;
    strings_.emplace_back(text);
    const StringId id(static_cast<std::int64_t>(strings_.size()) - 1);
    index_.emplace(strings_.back(), id);  // a deque never moves its strings: the key stays valid
    return id;
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
  bool contains(std::string_view text) const { return index_.contains(text); }
  std::string_view text(StringId id) const { return id ? std::string_view(strings_[id.index]) : std::string_view(); }

  std::size_t bytes() const {
    std::size_t total = 0;
    for (const auto& s : strings_) total += sizeof(s) + s.capacity();  // NOLINT(bugprone-sizeof-container): the object and its memory
    return total;
  }

 private:
  void index() {
    for (std::size_t i = 0; i < strings_.size(); ++i) index_.emplace(strings_[i], StringId(static_cast<std::int64_t>(i)));
  }

  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, StringId> index_;
  std::unordered_map<std::string, int> nextSuffix_;
};

}  // namespace retrograd

#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/hash_index.h"
#include "core/base/ids.h"

namespace retrograd {

/// Strings kept once, by id. A copy is independent of its original.
class StringTable {
 public:
  StringId intern(std::string_view text) {
    const auto hash = HashIndex::hashOf(text);
    if (const auto id = idOf(text, hash)) return id;
    const StringId id(static_cast<std::int64_t>(strings_.size()));
    index_.add(hash, id.index);
    strings_.emplace_back(text);
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
  bool contains(std::string_view text) const { return idOf(text, HashIndex::hashOf(text)).valid(); }
  std::string_view text(StringId id) const { return id ? std::string_view(strings_[id.index]) : std::string_view(); }

  std::size_t bytes() const {
    std::size_t total = 0;
    for (const auto& s : strings_)
      total += sizeof(s) + s.capacity();  // NOLINT(bugprone-sizeof-container): the object and its memory
    return total;
  }

 private:
  StringId idOf(std::string_view text, std::uint32_t hash) const {
    const auto at = index_.find(hash, [&](std::int32_t position) { return strings_[position] == text; });
    return at < 0 ? StringId() : StringId(static_cast<std::int64_t>(at));
  }

  std::deque<std::string> strings_;  // which never moves them: what text() gave stays good
  HashIndex index_;
  std::unordered_map<std::string, int> nextSuffix_;
};

}  // namespace retrograd

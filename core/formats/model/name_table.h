#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash_index.h"

namespace retrograd {

/// What names mean. The names must stay where they are.
template <class Meaning>
class NameTable {
 public:
  /// Null where it has none. Good until the next insert().
  const Meaning* find(std::string_view name) const {
    const auto at = positionOf(name, HashIndex::hashOf(name));
    return at < 0 ? nullptr : &entries_[at].meaning;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }

  struct Place {
    Meaning& meaning;
    bool isNew;
  };
  /// The meaning that the name has; a new one has this one from now on.
  Place insert(std::string_view name, Meaning meaning = {}) {
    const auto hash = HashIndex::hashOf(name);
    if (const auto at = positionOf(name, hash); at >= 0) return {entries_[at].meaning, false};
    index_.add(hash, static_cast<std::int32_t>(entries_.size()));
    entries_.push_back({name, std::move(meaning)});
    return {entries_.back().meaning, true};
  }

 private:
  struct Entry {
    std::string_view name;
    Meaning meaning{};
  };

  std::int32_t positionOf(std::string_view name, std::uint32_t hash) const {
    return index_.find(hash, [&](std::int32_t at) { return entries_[at].name == name; });
  }

  std::vector<Entry> entries_;
  HashIndex index_;
};

}  // namespace retrograd

#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace retrograd {

/// Index into one append-only table of a Document. Dense from 0, never reused; -1 means "none".
template <class Tag>
struct Id {
  std::int32_t index = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t i) : index(static_cast<std::int32_t>(i)) {}
  constexpr bool valid() const { return index >= 0; }
  constexpr explicit operator bool() const { return valid(); }
  constexpr auto operator<=>(const Id&) const = default;
};

using StringId = Id<struct StringTag>;
using SymbolId = Id<struct SymbolTag>;
using MetaId = Id<struct MetaTag>;
using PatternId = Id<struct PatternTag>;
using ValueId = Id<struct ValueTag>;
using StorageId = Id<struct StorageTag>;
using BoundSymbolId = Id<struct BoundSymbolTag>;
using SourceStackId = Id<struct SourceStackTag>;
using SubgraphId = Id<struct SubgraphTag>;

}  // namespace retrograd

template <class Tag>
struct std::hash<retrograd::Id<Tag>> {
  std::size_t operator()(retrograd::Id<Tag> id) const noexcept { return std::hash<std::int32_t>()(id.index); }
};

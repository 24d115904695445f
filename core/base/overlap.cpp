#include "core/base/overlap.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

namespace retrograd {
namespace {

constexpr std::int64_t countedElements = 1 << 20;

std::int64_t elementsOf(const TensorMeta& meta) {
  std::int64_t n = 1;
  for (auto size : meta.sizes) n *= size;
  return n;
}

/// Calls `visit` with the place of each element, in elements of the memory, until it returns false.
template <class Visit>
bool forEachPlace(const TensorMeta& meta, Visit&& visit) {
  std::vector<std::int64_t> index(meta.sizes.size(), 0);
  if (elementsOf(meta) == 0) return true;
  auto place = meta.offset;
  for (;;) {
    if (!visit(place)) return false;
    std::size_t d = meta.sizes.size();
    while (d-- > 0) {
      place += meta.strides[d];
      if (++index[d] < meta.sizes[d]) break;
      place -= meta.strides[d] * meta.sizes[d];
      index[d] = 0;
      if (d == 0) return true;
    }
    if (meta.sizes.empty()) return true;
  }
}

/// Each dimension steps over all that the smaller ones reach: then no place is met twice.
bool isNested(const TensorMeta& meta) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, size
  for (std::size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.sizes[d] > 1) dims.emplace_back(meta.strides[d], meta.sizes[d]);
  std::sort(dims.begin(), dims.end());
  std::int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

}  // namespace

bool overlapsItself(const TensorMeta& meta) {
  if (elementsOf(meta) < 2 || isNested(meta)) return false;
  if (elementsOf(meta) > countedElements) return true;
  std::unordered_set<std::int64_t> seen;
  return !forEachPlace(meta, [&](std::int64_t place) { return seen.insert(place).second; });
}

bool overlap(const TensorMeta& a, const TensorMeta& b) {
  if (elementsOf(a) == 0 || elementsOf(b) == 0) return false;
  const auto bytes = [](const TensorMeta& meta) {
    auto last = meta.offset;
    for (std::size_t d = 0; d < meta.sizes.size(); ++d) last += meta.strides[d] * (meta.sizes[d] - 1);
    return std::pair(meta.offset * itemSize(meta.dtype), (last + 1) * itemSize(meta.dtype));
  };
  const auto [beginA, endA] = bytes(a);
  const auto [beginB, endB] = bytes(b);
  if (endA <= beginB || endB <= beginA) return false;
  if (itemSize(a.dtype) != itemSize(b.dtype) || elementsOf(a) > countedElements || elementsOf(b) > countedElements)
    return true;
  std::unordered_set<std::int64_t> places;
  forEachPlace(a, [&](std::int64_t place) { return places.insert(place), true; });
  return !forEachPlace(b, [&](std::int64_t place) { return !places.contains(place); });
}

bool liesWithin(const TensorMeta& inner, const TensorMeta& outer) {
  if (elementsOf(inner) == 0) return true;
  if (elementsOf(outer) == 0) return false;
  const auto last = [](const TensorMeta& meta) {
    auto place = meta.offset;
    for (std::size_t d = 0; d < meta.sizes.size(); ++d) place += meta.strides[d] * (meta.sizes[d] - 1);
    return place;
  };
  if (inner.offset < outer.offset || last(inner) > last(outer)) return false;
  if (isNested(outer) && elementsOf(outer) == last(outer) - outer.offset + 1) return true;  // without gaps
  if (elementsOf(inner) > countedElements || elementsOf(outer) > countedElements) return false;
  std::unordered_set<std::int64_t> places;
  forEachPlace(outer, [&](std::int64_t place) { return places.insert(place), true; });
  return forEachPlace(inner, [&](std::int64_t place) { return places.contains(place); });
}

}  // namespace retrograd

#include "core/base/overlap.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace retrograd {
namespace {

constexpr std::int64_t mostPieces = 1 << 20;

/// Sorts them and joins those that touch.
std::vector<ByteRanges::Range> joined(std::vector<ByteRanges::Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<ByteRanges::Range> result;
  for (const auto& range : ranges) {
    if (!result.empty() && range.begin <= result.back().end) result.back().end = std::max(result.back().end, range.end);
    else result.push_back(range);
  }
  return result;
}

}  // namespace

ByteRanges ByteRanges::of(const TensorMeta& meta) {
  if (meta.layout != Layout::strided || meta.elements() == 0) return {};
  const auto item = itemSize(meta.dtype);
  const auto first = meta.offset * item;
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride in bytes, size
  for (std::size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.sizes[d] > 1 && meta.strides[d] > 0) dims.emplace_back(meta.strides[d] * item, meta.sizes[d]);
  std::sort(dims.begin(), dims.end());
  auto run = item;  // bytes without a gap, which the dimensions before `outer` make
  std::size_t outer = 0;
  for (; outer < dims.size() && dims[outer].first <= run; ++outer) run += dims[outer].first * (dims[outer].second - 1);
  std::int64_t pieces = 1;
  for (auto d = outer; d < dims.size(); ++d)
    if (__builtin_mul_overflow(pieces, dims[d].second, &pieces) || pieces > mostPieces)
      return {first, meta.storageBytes()};
  std::vector<Range> ranges{{first, first + run}};
  for (auto d = outer; d < dims.size(); ++d) {
    const auto before = ranges.size();
    for (std::int64_t i = 1; i < dims[d].second; ++i)
      for (std::size_t k = 0; k < before; ++k)
        ranges.push_back({ranges[k].begin + i * dims[d].first, ranges[k].end + i * dims[d].first});
  }
  ByteRanges result;
  result.ranges_ = joined(std::move(ranges));
  return result;
}

bool ByteRanges::overlaps(const ByteRanges& other) const {
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    if (a->begin < b->end && b->begin < a->end) return true;
    if (a->end <= b->begin) ++a;
    else ++b;
  }
  return false;
}

void ByteRanges::add(const ByteRanges& other) {
  auto all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  ranges_ = joined(std::move(all));
}

void ByteRanges::remove(const ByteRanges& other) {
  std::vector<Range> left;
  auto taken = other.ranges_.begin();
  for (auto range : ranges_) {
    while (taken != other.ranges_.end() && taken->end <= range.begin) ++taken;
    for (auto next = taken; next != other.ranges_.end() && next->begin < range.end; ++next) {
      if (range.begin < next->begin) left.push_back({range.begin, next->begin});
      range.begin = std::max(range.begin, next->end);
    }
    if (range.begin < range.end) left.push_back(range);
  }
  ranges_ = std::move(left);
}

namespace {

constexpr std::int64_t countedElements = 1 << 20;

/// Calls `visit` with the place of each element, in elements of the memory, until it returns false.
template <class Visit>
bool forEachPlace(const TensorMeta& meta, Visit&& visit) {
  std::vector<std::int64_t> index(meta.sizes.size(), 0);
  if (meta.elements() == 0) return true;
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
  if (meta.elements() < 2 || isNested(meta)) return false;
  if (meta.elements() > countedElements) return true;
  std::unordered_set<std::int64_t> seen;
  return !forEachPlace(meta, [&](std::int64_t place) { return seen.insert(place).second; });
}

bool overlap(const TensorMeta& a, const TensorMeta& b) {
  if (a.elements() == 0 || b.elements() == 0) return false;
  const auto itemA = itemSize(a.dtype), itemB = itemSize(b.dtype);
  if (a.storageBytes() <= b.offset * itemB || b.storageBytes() <= a.offset * itemA) return false;
  if (itemA != itemB || a.elements() > countedElements || b.elements() > countedElements) return true;
  std::unordered_set<std::int64_t> places;
  forEachPlace(a, [&](std::int64_t place) { return places.insert(place), true; });
  return !forEachPlace(b, [&](std::int64_t place) { return !places.contains(place); });
}

bool liesWithin(const TensorMeta& inner, const TensorMeta& outer) {
  if (inner.elements() == 0) return true;
  if (outer.elements() == 0) return false;
  const auto end = [](const TensorMeta& meta) { return meta.storageBytes() / itemSize(meta.dtype); };
  if (inner.offset < outer.offset || end(inner) > end(outer)) return false;
  if (isNested(outer) && outer.elements() == end(outer) - outer.offset) return true;  // without gaps
  if (inner.elements() > countedElements || outer.elements() > countedElements) return false;
  std::unordered_set<std::int64_t> places;
  forEachPlace(outer, [&](std::int64_t place) { return places.insert(place), true; });
  return forEachPlace(inner, [&](std::int64_t place) { return places.contains(place); });
}

}  // namespace retrograd

// Views of one memory: which of them a gradient belongs to.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>

#include "core/torch/steps/backward_walk.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr std::size_t mostSplit = 6;  ///< terms whose subsets are tried

/// Elements of the memory up to the last one of a view; 0 where elements share a place or lie before the first.
std::int64_t extentOf(const TensorMeta& meta) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride, size
  for (std::size_t i = 0; i < meta.sizes.size(); ++i)
    if (meta.sizes[i] != 1) dimensions.emplace_back(meta.strides[i], meta.sizes[i]);
  std::ranges::sort(dimensions);
  std::int64_t last = 0;
  for (const auto& [stride, size] : dimensions) {
    if (size == 0 || stride <= last) return 0;
    last += stride * (size - 1);
  }
  return meta.offset + last + 1;
}

at::Tensor viewOf(const at::Tensor& flat, const TensorMeta& meta) {
  return flat.as_strided(at::IntArrayRef(meta.sizes), at::IntArrayRef(meta.strides), meta.offset);
}

}  // namespace

/// The last value before it that is the same view of the same bytes; none where there is none. A recording cannot tell
/// them apart, so what read one of them reads the last one there.
ValueId BackwardWalk::equalViewBefore(ValueId value) {
  const auto keyOf = [&](ValueId id) {
    const auto& one = document_.value(id);
    return std::tuple(one.storage, one.meta, one.version);
  };
  if (equalViews_.empty())
    for (std::size_t i = 0; i < document_.valueCount(); ++i)
      if (const ValueId id(static_cast<std::int32_t>(i)); document_.isTensor(id) && document_.value(id).storage)
        equalViews_[keyOf(id)].push_back(id);
  const auto& equal = equalViews_[keyOf(value)];
  const auto own = std::ranges::find(equal, value);
  return own == equal.begin() || own == equal.end() ? ValueId() : *std::prev(own);
}

/// Whether the recorded gradient is the sum of some of the terms, and the others belong to an equal view before this.
bool BackwardWalk::splitAmongEqualViews(const Parts& parts, const std::vector<Candidate>& candidates, ValueId value,
                                        std::size_t& which) {
  if (parts.size() < 2 || parts.size() > mostSplit) return false;
  const auto before = equalViewBefore(value);
  if (!before) return false;
  std::vector<unsigned> subsets;
  for (unsigned mask = 1; mask + 1 < 1U << parts.size(); ++mask) subsets.push_back(mask);
  std::ranges::stable_sort(subsets, [](unsigned a, unsigned b) { return std::popcount(a) > std::popcount(b); });
  for (const auto mask : subsets) {
    Parts kept, others;
    for (std::size_t i = 0; i < parts.size(); ++i) (mask >> i & 1U ? kept : others).push_back(parts[i]);
    if (!meets(sumOf(kept), candidates, which)) continue;
    for (auto& part : others) addPart(before, std::move(part));
    return true;
  }
  return false;
}

/// An op that autograd saw write over a part of a memory: of the gradients of that memory's other views, what lies in
/// the part is the gradient of what it wrote.
void BackwardWalk::giveToWritten(std::size_t position) {
  if (!isNode(position) || writtenOperands(document_, ops_[position]).empty()) return;
  for (const auto output : document_.outputs(ops_[position])) {
    const auto written = recomputed_.standsFor(output);
    if (!written || !document_.isTensor(written)) continue;
    const auto storage = document_.value(written).storage;
    const auto& to = document_.meta(written);
    const auto end = extentOf(to);
    Parts given;
    for (auto& [index, parts] : parts_) {
      const ValueId value(index);
      const auto& from = document_.meta(value);
      const auto fromEnd = extentOf(from);
      if (value == written || document_.value(value).storage != storage || from.dtype != to.dtype) continue;
      if (end == 0 || fromEnd == 0) continue;
      Parts left;
      for (auto& part : parts) {
        auto flat = at::zeros({std::max(end, fromEnd)}, part.tensor.options());
        viewOf(flat, from).copy_(part.tensor);
        auto its = part;
        its.tensor = viewOf(flat, to).clone();
        viewOf(flat, to).zero_();
        if (largestOf(its.tensor) == 0) {
          left.push_back(std::move(part));
          continue;
        }
        given.push_back(std::move(its));
        part.tensor = viewOf(flat, from).clone();
        if (largestOf(part.tensor) > 0) left.push_back(std::move(part));
      }
      parts = std::move(left);
    }
    for (auto& part : given) parts_[written.index].push_back(std::move(part));
  }
}

}  // namespace retrograd

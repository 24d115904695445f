#include "core/torch/experiments/compare_weights.h"

#include <algorithm>
#include <cstring>

#include "core/torch/experiments/compare_runs.h"

namespace retrograd {
namespace {

bool sameBytes(const TensorData& a, const TensorData& b) {
  if (a.meta.dtype != b.meta.dtype || a.meta.sizes != b.meta.sizes || a.meta.strides != b.meta.strides) return false;
  const auto item = itemSize(a.meta.dtype);
  const auto *x = a.data + a.meta.offset * item, *y = b.data + b.meta.offset * item;
  const auto bytes = static_cast<std::size_t>(a.meta.bytes());
  return x == y || (a.meta.strides == contiguousStrides(a.meta.sizes) && std::memcmp(x, y, bytes) == 0);
}

}  // namespace

WeightComparison compareWeights(const TensorMap& a, const TensorMap& b, const Progress& progress) {
  WeightComparison result;
  std::size_t done = 0;
  for (const auto& [name, tensor] : a) {
    progress.at("weights", static_cast<double>(done++) / static_cast<double>(a.size()));
    const auto other = b.find(name);
    if (other == b.end()) {
      result.onlyInA.push_back(name);
      continue;
    }
    ++result.compared;
    if (!tensor.data || !other->second.data || sameBytes(tensor, other->second)) continue;
    const auto found = differenceOf(tensor, other->second);
    if (found.relative == 0) continue;
    const auto dot = name.rfind('.');
    result.differ.push_back(
        {name, dot == std::string::npos ? "" : name.substr(0, dot), found.largest, found.relative, found.note});
    result.largest = std::max(result.largest, found.relative);
  }
  for (const auto& [name, tensor] : b)
    if (!a.contains(name)) result.onlyInB.push_back(name);
  // By module, then by name: a name alone would put a module's parameters among those of modules below it.
  std::ranges::stable_sort(result.differ, [](const auto& x, const auto& y) { return x.module < y.module; });
  return result;
}

}  // namespace retrograd

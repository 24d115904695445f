#include "core/cut/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"

namespace retrograd {
namespace {

std::string namesOf(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Position of the dimension that is cut; none where the tensor goes to every microbatch.
std::optional<std::size_t> cutDim(const std::string& name, const TensorData& tensor,
                                  const std::map<std::string, BatchDim>& dims) {
  const auto rank = std::ssize(tensor.meta.sizes);
  const auto asked = dims.find(name);
  if (asked == dims.end()) return rank == 0 ? std::nullopt : std::optional<std::size_t>(0);
  if (!asked->second) return std::nullopt;
  const auto dim = *asked->second < 0 ? *asked->second + rank : *asked->second;
  if (dim < 0 || dim >= rank)
    badUse(fmt::format("it has no dimension {}, its shape is [{}]", *asked->second, fmt::join(tensor.meta.sizes, ", ")),
           name);
  return dim;
}

/// Part `i` of `count`: the first `size % count` ones have one more than the others.
TensorData partOf(const TensorData& tensor, std::size_t dim, std::int64_t i, std::int64_t count) {
  const auto size = tensor.meta.sizes[dim], least = size / count, longer = size % count;
  auto part = tensor;
  part.meta.offset += (i * least + std::min(i, longer)) * tensor.meta.strides[dim];
  part.meta.sizes[dim] = least + (i < longer);
  return part;
}

}  // namespace

BatchCut cutBatch(const TensorMap& batch, std::int64_t microbatches, const std::map<std::string, BatchDim>& dims) {
  for (const auto& [name, dim] : dims)
    if (!batch.contains(name)) badUse(fmt::format("the batch has no such tensor; it has {}", namesOf(batch)), name);
  BatchCut cut;
  auto count = microbatches;
  std::map<std::string, std::size_t> cutAlong;
  for (const auto& [name, tensor] : batch) {
    const auto dim = cutDim(name, tensor, dims);
    if (!dim) continue;
    cutAlong[name] = *dim;
    const auto size = tensor.meta.sizes[*dim];
    if (size == 0) badUse(fmt::format("it has nothing along dimension {} to make microbatches of", *dim), name);
    if (size >= count) continue;
    count = size;
    cut.fewerBecause = fmt::format("{} has {} along dimension {}", name, size, *dim);
  }
  if (cutAlong.empty())
    badUse(fmt::format("none of the batch's tensors ({}) is cut: every microbatch would be the whole batch",
                       namesOf(batch)));
  cut.microbatches.resize(count);
  for (const auto& [name, tensor] : batch) {
    const auto dim = cutAlong.find(name);
    for (std::int64_t i = 0; i < count; ++i)
      cut.microbatches[i].emplace(name, dim == cutAlong.end() ? tensor : partOf(tensor, dim->second, i, count));
  }
  return cut;
}

}  // namespace retrograd

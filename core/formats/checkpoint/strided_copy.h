#pragma once
#include "core/trace/tensor_data.h"

namespace retrograd {

/// A box of `meta`'s elements: where it begins in each dimension.
using Offsets = std::vector<std::int64_t>;

/// Copies all elements of `from` into a tensor laid out as `meta` whose storage begins at `storage`, at `offsets` of
/// it. Both have the same dtype and rank; the box lies inside. Cost: one pass over the elements.
void copyElements(const TensorData& from, const TensorMeta& meta, std::byte* storage, const Offsets& offsets);

/// The same elements laid out as `wanted` (same sizes and dtype): the tensor itself where it is already, else a copy.
/// Throws Error(badInput) for a layout in which elements share a place.
TensorData laidOutLike(const TensorData& tensor, const TensorMeta& wanted);

/// The tensor itself, or a copy where its first byte is not at a multiple of its item size.
TensorData aligned(const TensorData& tensor);

}  // namespace retrograd

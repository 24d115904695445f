#pragma once
#include <ATen/core/Tensor.h>

namespace retrograd {

/// A copy of `elements` in memory of its own, with exactly these strides and this offset: memory between the elements
/// is zero. Along a dimension of stride 0, where all elements are one in memory, those at index 0 are taken.
at::Tensor laidOut(const at::Tensor& elements, at::IntArrayRef strides, std::int64_t offset = 0);

/// The whole storage as bytes, whatever part of it the tensor shows.
at::Tensor wholeStorage(const at::Tensor& tensor);

}  // namespace retrograd

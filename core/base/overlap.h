#pragma once
#include "core/base/tensor_meta.h"

namespace retrograd {

/// Whether two indices of such a tensor lie in the same place. Exact for up to a million elements; beyond, in doubt it
/// says true.
bool overlapsItself(const TensorMeta& meta);
/// Whether two tensors of one memory share an element. Exact for up to a million elements; beyond, in doubt it says
/// true.
bool overlap(const TensorMeta& a, const TensorMeta& b);
/// Whether each element of `inner` is one of `outer`, in the same memory and dtype. Exact for up to a million elements;
/// beyond, in doubt it says false.
bool liesWithin(const TensorMeta& inner, const TensorMeta& outer);

}  // namespace retrograd

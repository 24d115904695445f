#include "core/formats/safetensors/tensor_extent.h"

#include <algorithm>

#include "core/base/error.h"

namespace retrograd {
namespace {

/// a * b + c with all of them known to be >= 0.
std::int64_t multiplyAdd(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0, sum = 0;
  if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum))
    throw Error(ErrorCode::badInput, "a tensor larger than 2^63 bytes");
  return sum;
}

}  // namespace

void checkExtent(const TensorMeta& meta) {
  std::int64_t elements = 1, last = meta.offset;
  bool empty = false;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    empty |= meta.sizes[i] == 0;
    elements = multiplyAdd(elements, std::max<std::int64_t>(meta.sizes[i], 1), 0);
    if (meta.sizes[i] > 0) last = multiplyAdd(meta.sizes[i] - 1, meta.strides[i], last);
  }
  multiplyAdd(elements, itemSize(meta.dtype), 0);
  if (!empty) multiplyAdd(multiplyAdd(last, 1, 1), itemSize(meta.dtype), 0);
}

}  // namespace retrograd

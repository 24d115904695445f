#include "core/formats/checkpoint/strided_copy.h"

#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/formats/files/deferred_check.h"

namespace retrograd {
namespace {

/// Where the innermost dimension's elements lie one after another in both.
bool isRun(const TensorMeta& from, const TensorMeta& to) {
  return !from.sizes.empty() && (from.sizes.back() == 1 || (from.strides.back() == 1 && to.strides.back() == 1));
}

TensorData storageFor(const TensorMeta& meta, std::int64_t bytes) {
  auto storage = std::make_shared<std::vector<std::byte>>(bytes);
  TensorData tensor;
  tensor.meta = meta;
  tensor.data = storage->data();
  tensor.bytes = storage->size();
  tensor.owner = std::move(storage);
  return tensor;
}

}  // namespace

void copyElements(const TensorData& from, const TensorMeta& meta, std::byte* storage, const Offsets& offsets) {
  const auto item = itemSize(meta.dtype);
  const auto rank = meta.sizes.size();
  if (from.meta.elements() == 0) return;
  std::int64_t source = from.meta.offset, target = meta.offset;
  for (std::size_t i = 0; i < rank; ++i) target += offsets[i] * meta.strides[i];
  const bool run = isRun(from.meta, meta);
  const auto outer = run ? rank - 1 : rank;
  const auto bytes = static_cast<std::size_t>(item * (run ? from.meta.sizes.back() : 1));
  std::vector<std::int64_t> index(outer, 0);
  for (;;) {
    std::memcpy(storage + target * item, from.data + source * item, bytes);
    auto dimension = outer;
    while (dimension > 0) {
      const auto i = dimension - 1;
      source += from.meta.strides[i];
      target += meta.strides[i];
      if (++index[i] < from.meta.sizes[i]) break;
      source -= from.meta.sizes[i] * from.meta.strides[i];
      target -= from.meta.sizes[i] * meta.strides[i];
      index[i] = 0;
      --dimension;
    }
    if (dimension == 0) return;
  }
}

TensorData laidOutLike(const TensorData& tensor, const TensorMeta& wanted) {
  bool same = true;
  for (std::size_t i = 0; i < wanted.sizes.size(); ++i)
    same &= wanted.sizes[i] <= 1 || wanted.strides[i] == tensor.meta.strides[i];
  if (same || wanted.elements() == 0) return tensor;
  auto dense = wanted;
  dense.offset = 0;
  if (dense.storageBytes() < dense.bytes()) badInput("its elements share memory in the model");
  requireVerified(tensor.data);
  auto result = storageFor(dense, dense.storageBytes());
  copyElements(tensor, dense, const_cast<std::byte*>(result.data), Offsets(dense.sizes.size(), 0));
  return result;
}

TensorData aligned(const TensorData& tensor) {
  const auto alignment = static_cast<std::uintptr_t>(itemSize(tensor.meta.dtype));
  if (tensor.bytes == 0 || reinterpret_cast<std::uintptr_t>(tensor.data) % alignment == 0) return tensor;
  requireVerified(tensor.data);
  auto result = storageFor(tensor.meta, static_cast<std::int64_t>(tensor.bytes));
  std::memcpy(const_cast<std::byte*>(result.data), tensor.data, tensor.bytes);
  return result;
}

}  // namespace retrograd

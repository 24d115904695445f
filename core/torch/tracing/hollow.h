#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// Marks a tensor as the value `id` of the recorder with serial number `owner`. Lives in the TensorImpl's backend meta,
/// so it survives saving by autograd, detach and shallow copies, which the TensorImpl's address does not. The owner is
/// a serial number because literal tensors outlive recorders, and addresses come back.
struct ValueTag final : c10::BackendMeta {
  std::int64_t id;
  std::uint64_t owner;
  at::Tensor twin;  ///< the meta tensor that a hollow tensor's kernels run on; undefined for real tensors

  ValueTag(std::int64_t valueId, std::uint64_t ownerSerial) : id(valueId), owner(ownerSerial) {}
};

/// The tag that recorder `owner` put on `tensor`, or null.
ValueTag* tagOf(const at::Tensor& tensor, std::uint64_t owner);

/// A tensor that claims to live on `device` and has no data, so that LibTorch picks the decompositions and formulas of
/// the real device (a meta tensor would get others). `twin` is its meta tensor; `base`: the hollow tensor whose storage
/// it shares. Reading its data is a c10::Error, never a crash.
at::Tensor makeHollow(const at::Tensor& twin, c10::Device device, const at::Tensor* base = nullptr);

/// An empty meta tensor with this shape.
at::Tensor makeMeta(const TensorMeta& meta, std::int64_t memoryBytes = 0);
at::Tensor makeMetaLike(const at::Tensor& tensor);

}  // namespace retrograd

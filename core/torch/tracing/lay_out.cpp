#include "core/torch/tracing/lay_out.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

namespace retrograd {

at::Tensor laidOut(const at::Tensor& elements, at::IntArrayRef strides, std::int64_t offset) {
  if (elements.numel() == 0) return at::empty_strided(elements.sizes(), strides, elements.options());
  auto last = offset;
  for (std::int64_t d = 0; d < elements.dim(); ++d) last += (elements.size(d) - 1) * strides[d];
  auto laid = at::zeros({last + 1}, elements.options()).as_strided(elements.sizes(), strides, offset);
  auto to = laid, from = elements;
  for (std::int64_t d = 0; d < elements.dim(); ++d) {
    if (strides[d] != 0) continue;
    to = to.narrow(d, 0, 1);
    from = from.narrow(d, 0, 1);
  }
  to.copy_(from);
  return laid;
}

at::Tensor wholeStorage(const at::Tensor& tensor) {
  const auto bytes = static_cast<std::int64_t>(tensor.storage().nbytes());
  return at::empty({0}, tensor.options().dtype(at::kByte)).set_(tensor.storage(), 0, {bytes}, {1});
}

}  // namespace retrograd

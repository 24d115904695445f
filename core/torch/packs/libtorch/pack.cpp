// What ops of LibTorch itself lack in C++: shapes that only PyTorch's Python code knows, and attention that has kernels
// for a GPU alone.
#include "core/torch/packs/libtorch/pack.h"

#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include "core/torch/packs/libtorch/attention.h"

namespace retrograd {
namespace {

constexpr std::int64_t alignment = 16;  // bytes that LibTorch pads the rows of the result to

/// The result of _grouped_mm: groups of rows (2-d times 3-d), of columns (3-d times 2-d), of the inner dimension (2-d
/// times 2-d), or a plain batch.
at::Tensor groupedMmShape(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& offsets,
                          const std::optional<at::Tensor>&, std::optional<at::ScalarType> type) {
  TORCH_CHECK((a.dim() == 2 || a.dim() == 3) && (b.dim() == 2 || b.dim() == 3),
              "_grouped_mm takes tensors of 2 or 3 dimensions");
  TORCH_CHECK(a.size(-1) == b.size(-2), "_grouped_mm: the inner dimensions are ", a.size(-1), " and ", b.size(-2));
  const bool isBatch = a.dim() == 3 && b.dim() == 3;
  TORCH_CHECK(isBatch != (offsets && offsets->defined()),
              "_grouped_mm takes offsets where one tensor has 2 dimensions, and only there");
  std::vector<std::int64_t> sizes;
  if (a.dim() == 2 && b.dim() == 3) sizes = {a.size(0), b.size(2)};
  else if (a.dim() == 3 && b.dim() == 2) sizes = {a.size(1), b.size(1)};
  else if (a.dim() == 2) sizes = {offsets->size(0), a.size(0), b.size(1)};
  else sizes = {a.size(0), a.size(1), b.size(2)};
  const auto options = a.options().dtype(type.value_or(a.scalar_type()));
  const auto multiple = alignment / static_cast<std::int64_t>(options.dtype().itemsize());
  const auto row = (sizes.back() + multiple - 1) / multiple * multiple;
  return sizes.size() == 2 ? at::empty_strided(sizes, {row, 1}, options)
                           : at::empty_strided(sizes, {sizes[1] * row, row, 1}, options);
}

void registerOps() {
  registerAttentionKernels();
  static torch::Library library = [] {
    torch::Library made(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
    made.impl("_grouped_mm", groupedMmShape);
    return made;
  }();
}

}  // namespace

OpPack libtorchPack() {
  return {
      "libtorch",
      "LibTorch itself",
      {"aten._grouped_mm.default", "aten._scaled_dot_product_flash_attention.default",
       "aten._scaled_dot_product_flash_attention_backward.default", "aten._scaled_dot_product_cudnn_attention.default",
       "aten._scaled_dot_product_cudnn_attention_backward.default",
       "aten._scaled_dot_product_efficient_attention.default",
       "aten._scaled_dot_product_efficient_attention_backward.default"},
      registerOps};
}

}  // namespace retrograd

#include "core/torch/execution/l1_norm.h"

#include <ATen/ops/norm.h>

namespace retrograd {

double l1Norm(const at::Tensor& tensor) {
  auto t = tensor.detach();
  if (t.layout() != at::kStrided) t = t.to_dense();
  if (!t.is_floating_point() && !t.is_complex()) t = t.to(at::kFloat);
  t = t.contiguous();
  return at::norm(t.to(t.is_complex() ? at::kComplexDouble : at::kDouble), 1).abs().item().toDouble();
}

}  // namespace retrograd

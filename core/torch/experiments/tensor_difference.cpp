#include "core/torch/experiments/compare_lane.h"
#include "core/torch/experiments/compare_runs.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

at::Tensor comparable(const at::Tensor& given) {
  auto tensor = given.layout() == at::kStrided ? given : given.to_dense();
  return tensor.to(at::kCPU, tensor.is_complex() ? at::kComplexDouble : at::kDouble);
}

}  // namespace

RunDifference differenceOf(const TensorData& a, const TensorData& b) {
  return differenceOf(borrowTensor(a), borrowTensor(b));
}

RunDifference differenceOf(const at::Tensor& a, const at::Tensor& b) {
  RunDifference row;
  if (a.sizes() != b.sizes() || a.is_complex() != b.is_complex()) {
    row.relative = std::numeric_limits<double>::infinity();
    row.note = typeComment(metaOf(a)) + " against " + typeComment(metaOf(b));
    return row;
  }
  const auto x = comparable(a), y = comparable(b);
  if (x.numel() == 0) return row;
  row.normA = x.norm().item().toDouble();
  row.normB = y.norm().item().toDouble();
  const auto finiteX = x.isfinite(), finiteY = y.isfinite();
  // Equal infinities and NaN in the same places agree.
  const auto sameBad = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));
  const auto both = finiteX.logical_and(finiteY);
  const auto disagree = both.logical_or(sameBad).logical_not().any().item().toBool();
  const auto zero = at::zeros({}, x.options());
  row.largest = x.sub(y).where(both, zero).abs().max().item().toDouble();
  row.scale =
      std::max(x.where(both, zero).abs().max().item().toDouble(), y.where(both, zero).abs().max().item().toDouble());
  row.relative = row.scale > 0 ? row.largest / row.scale : 0;
  if (disagree) {
    row.relative = std::numeric_limits<double>::infinity();
    row.note = "not finite in the same places";
  }
  return row;
}

}  // namespace retrograd

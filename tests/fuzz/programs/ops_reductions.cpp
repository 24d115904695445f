// Ops that reduce, scan and order.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {
namespace {

/// Of equal elements, eager's quantile on the CPU selects another than a sort does, which is what LibTorch traces: the
/// gradient is either's.
bool quantile(Draft& d, const std::string& op) {
  auto v = d.pick({Want::real, 1});
  if (v < 0 || !d.isDistinct(v)) v = d.shaped(d.sizes(1));
  if (v < 0 || !d.isDistinct(v)) return false;
  return d.call(op, {Arg::value(v), Arg::number(0.4), Arg::number(d.dim(v)), Arg::boolean(d.random.chance(0.5))});
}

/// corrcoef divides by the deviation of each row: of a row that is constant but for rounding, the gradient is one
/// rounding divided by another.
bool correlation(Draft& d, const std::string& op) {
  auto v = d.pick({Want::real, 2, 2});
  if (v < 0 || !d.isVaried(v)) v = d.shaped(d.sizes(2));
  if (v < 0 || !d.isVaried(v)) return false;
  return d.call(op, {Arg::value(v)});
}

}  // namespace

void addReductions(Catalogue& c) {
  const Catalogue::Flags both{true, true, false}, keeps{true, false, false};
  c.add("sum.default mean.default", "f");
  c.add(
      "nansum.default nanmean.default amax.default amin.default max.default min.default median.default "
      "nanmedian.default",
      "r");
  c.add("prod.default std.default var.default", "r1");
  c.add("sum.dim_IntList mean.dim", "f1 L K");
  c.add("amax.default amin.default logsumexp.default nansum.default nanmean.default", "r1 L K");
  c.add("prod.dim_int", "r1 D K");
  c.add("std.dim var.dim", "r1 L K K");
  c.add("std.correction var.correction std_mean.correction var_mean.correction", "r1 L #0 K");
  c.add("std_mean.dim var_mean.dim", "r1 L K K");
  c.add("norm.Scalar", "r #2");
  c.add("norm.ScalarOpt_dim", "r1 #2 L K");
  c.add("linalg_vector_norm.default", "r1 P L K");
  c.add("linalg_norm.default", "r=2");
  c.add("max.dim min.dim median.dim nanmedian.dim mode.default cummax.default cummin.default", "r1 D");
  c.add("argmax.default argmin.default", "r1 D? K");
  c.add("kthvalue.default", "r1 #1 D K");
  c.add("aminmax.default", "r1 D");
  c.add("cumsum.default cumprod.default", "r1 D", both);
  c.add("logcumsumexp.default", "r1 D", keeps);
  c.add("softmax.int log_softmax.int special_softmax.default special_log_softmax.default", "r1 D", keeps);
  c.add("_softmax.default _log_softmax.default", "r1 D F", keeps);
  c.add("any.default all.default", "a");
  c.add("any.dim all.dim", "a1 D K");
  c.add("count_nonzero.default", "a");
  c.add("count_nonzero.dim_IntList", "a1 L");
  c.add("trace.default", "r=2");
  c.add("sort.default", "r1 D K");
  c.add("sort.stable", "r1 T D K");
  c.add("argsort.default", "r1 D K");
  c.add("msort.default", "r1");
  c.add("topk.default", "r1 #1 D");
  c.add("diff.default", "r1 #1 D");
  c.add("trapezoid.dx", "r1 P D");
  c.add("cumulative_trapezoid.dx", "r1 P D");
  c.add("quantile.scalar nanquantile.scalar", quantile);
  c.add("renorm.default", "r2 #2 D P");
  c.add("cov.default", "r=2");
  c.add("corrcoef.default", correlation);
  c.add("dist.default", "r ~r #2");
  c.add("cosine_similarity.default", "r2 =r D");
  c.add("pairwise_distance.default", "r=2 =r");
  c.add("histc.default", "r #4 #-2 #2");
  c.add("bincount.default", "i=1");
  c.add("sum.default", "n");
  c.add("cumsum.default", "i1 D");
  c.add("max.dim", "i1 D K");
  c.add("sort.default", "i1 D");
  c.add("gradient.scalarint", "r1 #1 D");
  c.add("logsumexp.default", "r1 #[0]");
}

}  // namespace retrograd::fuzz

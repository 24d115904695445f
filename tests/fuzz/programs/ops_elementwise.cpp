// Ops that compute each element by itself.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {

void addElementwise(Catalogue& c) {
  const Catalogue::Flags keeps{true, false, false}, both{true, true, false}, writes{false, true, false};
  c.add(
      "neg.default sin.default cos.default tanh.default sinh.default cosh.default atan.default asinh.default "
      "exp.default expm1.default sigmoid.default "
      "square.default tan.default sgn.default",
      "f", both);
  c.add(
      "sign.default erf.default erfc.default floor.default ceil.default round.default trunc.default frac.default "
      "relu.default silu.default mish.default "
      "hardswish.default hardsigmoid.default "
      "deg2rad.default rad2deg.default relu6.default selu.default sinc.default i0.default exp2.default fix.default",
      "r", both);
  c.add(
      "log_sigmoid.default softplus.default special_i0e.default special_i1.default special_i1e.default "
      "special_ndtr.default special_log_ndtr.default "
      "special_erfcx.default special_expit.default "
      "special_sinc.default special_expm1.default special_exp2.default special_round.default",
      "r", keeps);
  c.add("hardshrink.default softshrink.default positive.default conj_physical.default", "r", keeps);
  c.add("hardtanh.default elu.default celu.default leaky_relu.default", "r", both);
  c.add("gelu.default", "r _", keeps);
  c.add("nan_to_num.default", "r", both);
  c.add(
      "log.default log2.default log10.default log1p.default sqrt.default rsqrt.default reciprocal.default "
      "digamma.default lgamma.default",
      "p", both);
  c.add(
      "special_entr.default special_digamma.default special_gammaln.default special_log1p.default special_psi.default",
      "p", keeps);
  c.add("asin.default acos.default atanh.default erfinv.default arcsin.default arctanh.default", "u", both);
  c.add("special_erfinv.default arccos.default", "u", keeps);
  c.add("acosh.default arccosh.default", "g", both);
  c.add("logit.default", "o", both);
  c.add("special_logit.default special_ndtri.default", "o", keeps);
  c.add("abs.default absolute.default", "r", both);
  c.add("abs.default angle.default", "f");
  c.add("angle.default conj.default _conj.default conj_physical.default resolve_conj.default resolve_neg.default", "c");
  c.add("polar.default", "p =p");
  c.add("complex.default", "r =r");
  c.add("polygamma.default", "I2 p");
  c.add("mvlgamma.default", "g #1");

  c.add("add.Tensor sub.Tensor", "f ~?", both);
  c.add("mul.Tensor", "f ~?", both);
  c.add("add.Tensor sub.Tensor", "f ~f S", both);
  c.add("add.Scalar sub.Scalar mul.Scalar", "f S", both);
  c.add("rsub.Scalar", "f S", keeps);
  c.add("rsub.Tensor", "f ~f", keeps);
  c.add("div.Tensor true_divide.Tensor", "f ~p", both);
  c.add("div.Scalar", "f P", both);
  c.add("div.Tensor_mode", "r ~p $floor");
  c.add("div.Tensor_mode", "r ~p $trunc");
  c.add("floor_divide.default", "r ~p");
  c.add("pow.Tensor_Scalar float_power.Tensor_Scalar", "p S", keeps);
  c.add("pow.Tensor_Scalar", "f #2", keeps);
  c.add("pow_.Scalar", "wf #2");
  c.entries.back().writes = true;
  c.add("pow.Tensor_Tensor", "p ~u", keeps);
  c.add("pow_.Tensor", "wp ~u");
  c.entries.back().writes = true;
  c.add("pow.Scalar", "P u");
  c.add("atan2.default hypot.default copysign.Tensor", "r ~r", both);
  c.add("arctan2.default", "p ~r", both);
  c.add("maximum.default minimum.default fmax.default fmin.default", "r ~r", keeps);
  c.add("fmod.Scalar remainder.Scalar", "r P", both);
  c.add("fmod.Tensor remainder.Tensor", "r ~p", both);
  c.add("lerp.Scalar", "f =f #0.25", both);
  c.add("lerp.Tensor", "f =f =f", both);
  c.add("addcmul.default", "f ~f ~f #0.5", both);
  c.add("addcdiv.default", "f ~f ~p #0.5", both);
  c.add("xlogy.Tensor special_xlog1py.default", "r ~p", keeps);
  c.add("xlogy.Tensor", "r ~p", writes);
  c.add("logaddexp.default logaddexp2.default", "r ~r", keeps);
  c.add("ldexp.Tensor", "r ~?", keeps);
  c.add("heaviside.default", "r ~r");
  c.add("clamp.default clip.default", "r #-0.5 #1.5", both);
  c.add("clamp_min.default clamp_max.default", "r S", both);
  c.add("clamp.Tensor", "r ~r", keeps);
  c.add("clamp_min.Tensor clamp_max.Tensor", "r ~r", both);
  c.add("threshold.default", "r #0.1 S", both);
  c.add("where.self", [](Draft& d, const std::string& op) {
    const auto a = d.pick({Want::floating});
    if (a < 0) return false;
    const auto m = d.truths(a), b = d.partner(a, false);
    return m >= 0 && b >= 0 && d.call(op, {Arg::value(m), Arg::value(a), Arg::value(b)});
  });
  c.add("where.ScalarOther", [](Draft& d, const std::string& op) {
    const auto a = d.pick({Want::floating});
    if (a < 0) return false;
    const auto m = d.truths(a);
    return m >= 0 && d.call(op, {Arg::value(m), Arg::value(a), Arg::number(d.scalar())});
  });
  c.add("where.ScalarSelf", [](Draft& d, const std::string& op) {
    const auto a = d.pick({Want::floating});
    if (a < 0) return false;
    const auto m = d.truths(a);
    return m >= 0 && d.call(op, {Arg::value(m), Arg::number(d.scalar()), Arg::value(a)});
  });
  c.add("masked_fill.Scalar", "f m S", both);
  c.add("eq.Tensor ne.Tensor", "a ~n");
  c.add("lt.Tensor le.Tensor gt.Tensor ge.Tensor", "r ~r");
  c.add("lt.Scalar le.Scalar gt.Scalar ge.Scalar eq.Scalar ne.Scalar", "r S");
  c.add("isnan.default isinf.default isfinite.default signbit.default isneginf.default isposinf.default", "r");
  c.add("isclose.default", "r =r");
  c.add("logical_not.default", "a");
  c.add("logical_and.default logical_or.default logical_xor.default", "a ~n");
  c.add("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", "n ~n", writes);
  c.add("bitwise_not.default", "n", writes);
  c.add("add.Scalar mul.Scalar sub.Scalar", "i I3", writes);
  c.add("remainder.Scalar", "i #3", writes);
  c.add("add.Tensor mul.Tensor", "i ~n", writes);
  c.add("floor_divide.Scalar", "i #2");
  c.add("bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar", "i I2");
  c.add("bitwise_and.Scalar bitwise_or.Scalar", "i I3");
  c.add("gcd.default", "i ~n");
  c.add("clone.default", "a");
  c.add("clone.default", "f _ ");
  c.add("zeros_like.default ones_like.default", "a");
  c.add("full_like.default", "f S");
  c.add("to.dtype", [](Draft& d, const std::string& op) {
    const auto a = d.pick({Want::any});
    if (a < 0) return false;
    // Rather there and back: what comes back is a copy or not, as the dtypes have it.
    std::vector<DType> types{DType::f32, DType::f64, DType::f64, d.main, d.main, DType::f32, DType::bf16};
    if (d.tensor(a).is_complex()) types = {DType::c128, DType::c64};
    if (!d.tensor(a).is_floating_point() && !d.tensor(a).is_complex())
      types = {DType::i64, DType::i32, d.main, DType::b8, DType::f64};
    const auto there = d.make(op, {Arg::value(a), Arg::dtype(d.random.of(types))});
    return there >= 0 && (d.random.chance(0.4) || d.tensor(there).is_complex() ||
                          d.call(op, {Arg::value(there), Arg::dtype(d.main)}));
  });
  c.add("_to_copy.default", [](Draft& d, const std::string& op) {
    const auto a = d.pick({Want::real | Want::integer | Want::boolean});
    return a >= 0 && d.call(op, {Arg::value(a), Arg::dtype(d.random.of<DType>({d.main, DType::f64, DType::f32}))});
  });
  c.add("type_as.default", "f ~f");
  c.add("nan_to_num.default", [](Draft& d, const std::string& op) {
    // The one place where NaN and infinities come and go: 0 / 0, log of what is negative.
    const auto a = d.pick({Want::real});
    if (a < 0) return false;
    const bool before = d.allowNonFinite;
    d.allowNonFinite = true;
    const auto bad = d.make(d.random.chance(0.5) ? "aten.log.default" : "aten.sqrt.default", {Arg::value(a)});
    const bool done = bad >= 0 && d.call(op, {Arg::value(bad), Arg::number(0.5), Arg::number(1.5), Arg::number(-1.5)});
    d.allowNonFinite = before;
    return done;
  });
}

}  // namespace retrograd::fuzz

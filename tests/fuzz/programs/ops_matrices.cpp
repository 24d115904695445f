// Products of matrices and vectors, and linear algebra.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {
namespace {

struct Product {
  int a = -1, b = -1;
};

Product operands(Draft& d, const Sizes& first, const Sizes& second) {
  Product p;
  p.a = d.shaped(first);
  p.b = p.a < 0 ? -1 : d.shaped(second, p.a);
  return p;
}

std::int64_t size(Draft& d) { return d.random.between(1, 4); }

bool product(Draft& d, const std::string& op) {
  const auto n = size(d), k = size(d), m = size(d);
  const auto name = op.substr(5, op.rfind('.') - 5);
  Product p;
  if (name == "mm") p = operands(d, {n, k}, {k, m});
  else if (name == "mv") p = operands(d, {n, k}, {k});
  else if (name == "bmm") p = operands(d, {2, n, k}, {2, k, m});
  else if (name == "dot" || name == "vdot") p = operands(d, {k}, {k});
  else if (name == "outer" || name == "ger") p = operands(d, {n}, {m});
  else if (name == "inner") p = operands(d, {n, k}, {m, k});
  else if (name == "linear") p = operands(d, {2, n, k}, {m, k});
  else if (name == "matmul" || name == "linalg_matmul") {
    const auto kind = d.random.below(5);
    p = kind == 0   ? operands(d, {n, k}, {k, m})
        : kind == 1 ? operands(d, {2, n, k}, {k, m})
        : kind == 2 ? operands(d, {k}, {k, m})
        : kind == 3 ? operands(d, {n, k}, {2, k, m})
                    : operands(d, {2, n, k}, {k});
  } else if (name == "kron")
    p = operands(d, {d.random.between(1, 2), 2},
                 d.random.chance(0.5) ? Sizes{2, d.random.between(1, 3)} : Sizes{d.random.between(1, 3)});
  return p.b >= 0 && d.call(op, {Arg::value(p.a), Arg::value(p.b)});
}

/// addmm and its like, written in place too.
bool added(Draft& d, const std::string& op) {
  const auto n = size(d), k = size(d), m = size(d);
  auto name = op.substr(5, op.rfind('.') - 5);
  const bool inPlace = name.ends_with('_');
  if (inPlace) name.pop_back();
  Sizes base, first, second;
  if (name == "addmm") base = {n, m}, first = {n, k}, second = {k, m};
  if (name == "addmv") base = {n}, first = {n, k}, second = {k};
  if (name == "addr") base = {n, m}, first = {n}, second = {m};
  if (name == "addbmm") base = {n, m}, first = {2, n, k}, second = {2, k, m};
  if (name == "baddbmm") base = {2, n, m}, first = {2, n, k}, second = {2, k, m};
  if (!inPlace && d.random.chance(0.3)) base = {m};
  if (name == "addmv" && base.size() == 1) base = {n};
  const auto a = d.shaped(first), b = a < 0 ? -1 : d.shaped(second, a), to = b < 0 ? -1 : d.shaped(base, a);
  return to >= 0 && d.call(op, {Arg::value(to), Arg::value(a), Arg::value(b),
                                d.random.chance(0.5) ? Arg::missing() : Arg::number(0.5),
                                d.random.chance(0.5) ? Arg::missing() : Arg::number(-1.5)});
}

/// a @ a.T + I: symmetric, positive and far from singular. -1 where it did not come about.
int wellConditioned(Draft& d, std::int64_t n) {
  const auto a = d.shaped({n, n});
  if (a < 0 || (d.tensor(a).scalar_type() != at::kDouble && d.tensor(a).scalar_type() != at::kFloat)) return -1;
  const auto t = d.make("aten.t.default", {Arg::value(a)});
  auto s = t < 0 ? -1 : d.make("aten.mm.default", {Arg::value(a), Arg::value(t)});
  const auto eye =
      s < 0 ? -1
            : d.make("aten.eye.default",
                     {Arg::number(n), Arg::dtype(d.tensor(a).scalar_type() == at::kDouble ? DType::f64 : DType::f32)});
  return eye < 0 ? -1 : d.make("aten.add.Tensor", {Arg::value(s), Arg::value(eye)});
}

bool square(Draft& d, const std::string& op) {
  const auto n = d.random.between(2, 3);
  const auto a = wellConditioned(d, n);
  if (a < 0) return false;
  if (op == "aten.linalg_matrix_power.default" || op == "aten.matrix_power.default")
    return d.call(op, {Arg::value(a), Arg::number(d.random.between(-1, 3))});
  if (op == "aten.linalg_solve.default" || op == "aten.cholesky_solve.default") {
    const auto b = d.shaped({n, 2}, a);
    if (b < 0) return false;
    if (op == "aten.linalg_solve.default") return d.call(op, {Arg::value(a), Arg::value(b)});
    const auto l = d.make("aten.linalg_cholesky.default", {Arg::value(a)});
    return l >= 0 && d.call(op, {Arg::value(b), Arg::value(l)});
  }
  if (op == "aten.linalg_solve_triangular.default" || op == "aten.triangular_solve.default") {
    const auto b = d.shaped({n, 2}, a);
    const auto u = b < 0 ? -1 : d.make("aten.triu.default", {Arg::value(a)});
    if (u < 0) return false;
    return op == "aten.triangular_solve.default" ? d.call(op, {Arg::value(b), Arg::value(u)})
                                                 : d.call(op, {Arg::value(u), Arg::value(b), Arg::boolean(true)});
  }
  if (op == "aten.linalg_pinv.default") return d.call(op, {Arg::value(a), Arg::number(1e-6)});
  if (op == "aten.linalg_matrix_norm.default")
    return d.call(op, {Arg::value(a), Arg::number(d.random.of<std::int64_t>({1, -1, 2, -2}))});
  return d.call(op, {Arg::value(a)});
}

}  // namespace

void addMatrices(Catalogue& c) {
  c.add(
      "mm.default mv.default bmm.default dot.default vdot.default outer.default ger.default inner.default "
      "linear.default matmul.default linalg_matmul.default "
      "kron.default",
      product);
  c.add("addmm.default addmv.default addr.default addbmm.default baddbmm.default", added);
  c.add("addmm_.default addmv_.default addr_.default addbmm_.default baddbmm_.default", added, {false, true, false});
  c.add(
      "linalg_inv.default inverse.default linalg_det.default det.default logdet.default slogdet.default "
      "linalg_slogdet.default linalg_cholesky.default "
      "linalg_matrix_power.default matrix_power.default "
      "linalg_solve.default linalg_solve_triangular.default triangular_solve.default cholesky_inverse.default "
      "cholesky_solve.default linalg_pinv.default "
      "linalg_qr.default linalg_eigvalsh.default linalg_svdvals.default linalg_matrix_norm.default "
      "linalg_lu.default linalg_inv_ex.default linalg_cholesky_ex.default",
      square);
  c.add("linalg_cross.default", [](Draft& d, const std::string& op) {
    const auto a = d.shaped({2, 3}), b = a < 0 ? -1 : d.shaped({2, 3}, a);
    return b >= 0 && d.call(op, {Arg::value(a), Arg::value(b)});
  });
  c.add("matrix_exp.default linalg_matrix_exp.default", "u=2");
  c.entries.pop_back();
  c.entries.back().custom = [](Draft& d, const std::string& op) {
    const auto a = d.shaped({2, 2});
    return a >= 0 && d.call(op, {Arg::value(a)});
  };
  c.add("einsum.default", [](Draft& d, const std::string& op) {
    const auto n = size(d), k = size(d), m = size(d);
    const auto kind = d.random.below(4);
    const Product p = kind == 0   ? operands(d, {n, k}, {k, m})
                      : kind == 1 ? operands(d, {n}, {m})
                      : kind == 2 ? operands(d, {2, n, k}, {2, k, m})
                                  : operands(d, {n, k}, {n, k});
    constexpr const char* equations[] = {"ij,jk->ik", "i,j->ij", "bij,bjk->bik", "ij,ij->i"};
    return p.b >= 0 && d.call(op, {Arg::string(equations[kind]), Arg::values({p.a, p.b})});
  });
  c.add("tensordot.default", [](Draft& d, const std::string& op) {
    const auto k = size(d);
    const auto p = operands(d, {2, k}, {k, 3});
    return p.b >= 0 && d.call(op, {Arg::value(p.a), Arg::value(p.b), Arg::ints({1}), Arg::ints({0})});
  });
  c.add("chain_matmul.default linalg_multi_dot.default", [](Draft& d, const std::string& op) {
    const auto p = operands(d, {2, 3}, {3, 2});
    const auto third = p.b < 0 ? -1 : d.shaped({2, 3}, p.a);
    return third >= 0 && d.call(op, {Arg::values({p.a, p.b, third})});
  });
  c.add("bilinear.default", [](Draft& d, const std::string& op) {
    const auto p = operands(d, {2, 2}, {2, 3});
    const auto w = p.b < 0 ? -1 : d.shaped({2, 2, 3}, p.a);
    return w >= 0 && d.call(op, {Arg::value(p.a), Arg::value(p.b), Arg::value(w)});
  });
  c.add("cdist.default", [](Draft& d, const std::string& op) {
    const auto p = operands(d, {2, 3}, {3, 3});
    return p.b >= 0 && p.a != p.b &&
           d.call(op, {Arg::value(p.a), Arg::value(p.b), Arg::number(d.random.chance(0.5) ? 2.0 : 1.0)});
  });
  c.add("fft_fft.default fft_ifft.default", "f1");
  c.add("fft_rfft.default fft_hfft.default", "r1");
  c.add("fft_irfft.default", "c1");
  c.add("fft_fft2.default", "f2");
  c.add("fft_fftshift.default", "f1");
}

}  // namespace retrograd::fuzz

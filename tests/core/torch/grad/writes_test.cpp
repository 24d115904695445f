// Writes in place, through every kind of view, against LibTorch's own autograd: outputs and gradients, also which
// gradients there are at all.
#include <gtest/gtest.h>

#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/check.h"
#include "core/torch/experiments/grad_check.h"
#include "core/torch/judging/compare.h"
#include "core/trace/verifier.h"
#include "tests/core/formats/cases.h"
#include "tests/support/comparison.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"

namespace retrograd::test {
namespace {

std::shared_ptr<const Analysis> open(const std::string& body, const DerivationRequest& options = {}) {
  const auto path = writeTemporary("writes.txt",
                                   "def computation(x, y, z, w, b):\n"
                                   "    # x: \"f64[4, 6]\"\n    # y: \"f64[4, 6]\"\n    # z: \"c128[3, 4]\"\n"
                                   "    # w: \"f64[4, 6]\", parameter w\n    # b: \"f64[4, 6]\", buffer b\n" +
                                       body);
  return openModel(path, options);
}

void expectAsEager(const std::string& body, const DerivationRequest& options = {}) {
  SCOPED_TRACE(body);
  const auto analysis = open(body, options);
  ASSERT_TRUE(analysis->derived()) << (analysis->problems.empty() ? "" : analysis->problems.back().message);
  for (const auto* trace : {&analysis->joint, &analysis->forward, &analysis->backward})
    for (const auto& problem : verify(*analysis->document, *trace))
      ADD_FAILURE() << trace->name << ": " << problem.place << ": " << problem.message;
  const auto ours = runSplit(*analysis);
  const auto eager = runEager(*analysis);
  ASSERT_EQ(ours.outputs.size(), eager.outputs.size());
  for (std::size_t i = 0; i < ours.outputs.size(); ++i) {
    test::Comparison comparison;
    if (ours.outputs[i] && eager.outputs[i]) comparison.add("output", *ours.outputs[i], *eager.outputs[i]);
    EXPECT_LE(comparison.error(), 1e-12) << i << " " << comparison.failure();
  }
  for (const auto& [name, gradient] : eager.gradients) {
    ASSERT_TRUE(ours.gradients.contains(name)) << name;
    test::Comparison comparison;
    comparison.add(name, ours.gradients.at(name), gradient);
    EXPECT_LE(comparison.error(), 1e-12) << name << " " << comparison.failure();
  }
  for (const auto& [name, gradient] : ours.gradients)
    EXPECT_TRUE(eager.gradients.contains(name)) << name << ": eager has no gradient";
}

/// y is written to a value v of its own, in one of these ways.
class WritesThroughViews : public testing::TestWithParam<const char*> {};

// A write through any chain of views reaches the base, and all other views of it.
TEST_P(WritesThroughViews, AreThoseOfEager) {
  const std::string body =
      std::string("    v = aten.mul.Tensor(x, 1.0)\n    other = aten.select.int(v, 0, 1)\n") + GetParam() +
      "    p = aten.sin(v)\n    q = aten.exp(other)\n    r = aten.mul.Tensor(p, w)\n    return r, q\n";
  expectAsEager(body);
  DerivationRequest recomputed;
  recomputed.partition.recompute = {"all"};
  expectAsEager(body, recomputed);
}

INSTANTIATE_TEST_SUITE_P(
    Chains, WritesThroughViews,
    testing::Values("    a = aten.expand(v, [4, 6])\n    a2 = aten.add_.Tensor(a, y)\n",  // expand of the same size
                    "    a = aten.unsqueeze(v, 0)\n    a1 = aten.expand(a, [1, 4, 6])\n    a2 = aten.mul_.Tensor(a1, "
                    "2.0)\n",                                                                // expand of size one
                    "    a = aten.unfold(v, 1, 2, 2)\n    a2 = aten.mul_.Tensor(a, 3.0)\n",  // unfold, no overlap
                    "    a = aten.as_strided(v, [5], [2], 3)\n    a2 = aten.add_.Scalar(a, 7.0)\n",  // as_strided with
                                                                                                     // an offset
                    "    a = aten.as_strided(v, [2, 2], [1, 6])\n    a1 = aten.t(a)\n    a2 = aten.mul_.Tensor(a1, "
                    "3.0)\n",
                    "    a = aten.diagonal(v, 1)\n    a1 = aten.slice.Tensor(a, 0, 0, 4, 2)\n    a2 = aten.tanh_(a1)\n",
                    "    n = aten.mul.Tensor(b, 1.0)\n    a, a1 = aten.split.Tensor(n, 3, 1)\n    u0, u1, u2, u3 = "
                    "aten.unbind.int(a1, 0)\n    a2 = aten.select.int(u2, 0, "
                    "2)\n    a3 = aten.mul_.Scalar(a2, 2.0)\n    a4 = aten.add_.Tensor(v, n)\n",
                    "    a = aten.t(v)\n    a1 = aten.select.int(a, 0, 0)\n    m = aten.mean(v)\n    a2 = "
                    "aten.copy_(a1, m)\n    f = aten.view(v, [-1])\n    f1 = "
                    "aten.slice.Tensor(f, 0, 0, 3)\n    f2 = aten.neg_(f1)\n",
                    "    a = aten.t(v)\n    a1 = aten.reshape(a, [-1])\n    a2 = aten.select.int(a1, 0, 0)\n    a3 = "
                    "aten.add_.Scalar(a2, 5.0)\n    s = aten.sum(a1)\n    "
                    "a4 = aten.add_.Tensor(v, s)\n",  // a copy
                    "    a = aten.contiguous(v)\n    a2 = aten.mul_.Tensor(a, y)\n",
                    "    a = aten.flatten.using_ints(v)\n    a2 = aten.mul_.Scalar(a, 2.0)\n",
                    "    a = aten.transpose_(v, 0, 1)\n    a1 = aten.unsqueeze_(v, 0)\n    a2 = aten.squeeze_.dim(v, "
                    "0)\n    a3 = aten.fill_diagonal_(v, 1.0)\n    a4 = "
                    "aten.transpose_(v, 0, 1)\n",
                    "    a = aten.clamp_(v, -0.2, 0.2)\n    a1 = aten.add_.Scalar(other, 1.0)\n    a2 = "
                    "aten.cumsum_(v, 0)\n",
                    "    a = aten.permute(v, [1, 0])\n    a1 = aten.slice.Tensor(a, 0, 1, 4, 2)\n    a2 = "
                    "aten.view(a1, [2, 2, 2])\n    a3 = aten.mul_.Scalar(a1, 3.0)\n",
                    "    a = aten.slice.Tensor(v, 1, 0, 6, 2)\n    a1 = aten.zero_(a)\n",
                    "    a = aten.fill_.Scalar(v, 2.0)\n"));

/// Bodies of their own.
class Writes : public testing::TestWithParam<const char*> {};
TEST_P(Writes, AreThoseOfEager) { expectAsEager(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Programs, Writes,
    testing::Values(
        // What a composite op makes by views of something inside it: the gradient comes in at its result.
        "    k = aten.relu(w)\n    r = aten.repeat_interleave.self_int(k, 2, 0)\n    n = aten.narrow(r, 0, 0, 1)\n    "
        "m = aten.mean(y)\n    n1 = "
        "aten.sub_.Tensor(n, m)\n    o = aten.mul.Tensor(r, 1.0)\n    return o\n",
        "    f = aten.flatten.using_ints(w)\n    s = aten.slice.Tensor(f, 0, 0, 2)\n    k = aten.kron(s, s)\n    k1 = "
        "aten.select.int(k, 0, 0)\n    k2 = "
        "aten.mul_.Tensor(k1, 2.0)\n    o = aten.sum(k)\n    return o\n",
        "    r = aten.reshape(x, [1, 1, 24])\n    p = aten.avg_pool1d(r, [2])\n    s = aten.slice.Tensor(p, 2, 1, 5)\n "
        "   a = aten.add_.Scalar(s, 1.0)\n    o "
        "= aten.mul.Tensor(p, p)\n    return o\n",
        // A round trip through another dtype makes a copy, whatever the schema says; x is not written and keeps its
        // gradient.
        "    f = aten.to.dtype(x, torch.float32)\n    v = aten.to.dtype(f, torch.float64)\n    a = aten.add_.Tensor(v, "
        "x)\n    o = aten.mul.Tensor(v, v)\n    "
        "return o\n",
        // detach shares memory and cuts the gradient; each side keeps its own.
        "    v = aten.mul.Tensor(x, y)\n    d = aten.detach(v)\n    a = aten.mul_.Tensor(d, w)\n    o = "
        "aten.mul.Tensor(v, 2.0)\n    p = aten.mul.Tensor(d, "
        "3.0)\n    return o, p\n",
        "    v = aten.mul.Tensor(x, y)\n    r = aten.select.int(v, 0, 1)\n    d = aten.detach(r)\n    a = "
        "aten.add_.Scalar(d, 3.0)\n    o = aten.add.Tensor(v, "
        "2.0)\n    return o\n",
        "    v = aten.mul.Tensor(x, y)\n    d = aten.detach(v)\n    e = aten.select.int(d, 0, 2)\n    a = "
        "aten.mul_.Tensor(v, 2.0)\n    o = aten.mul.Tensor(e, "
        "w)\n    return o, v\n",
        // Autograd does not know that the parts of unsafe_split share memory.
        "    v = aten.mul.Tensor(x, 2.0)\n    p, q = aten.unsafe_split.Tensor(v, 3, 1)\n    a = aten.add_.Scalar(p, "
        "1.0)\n    o = aten.add.Tensor(v, 1.0)\n    "
        "s = aten.sum(p)\n    return o, s\n",
        // The backward of kron reads what lies in v's memory by then.
        "    v = aten.add.Tensor(w, y)\n    f = aten.flatten.using_ints(v)\n    s = aten.slice.Tensor(f, 0, 0, 2)\n    "
        "k = aten.kron(s, s)\n    a = "
        "aten.addcmul_(v, w, w)\n    o = aten.sum(k)\n    return o\n",
        // index_add_ reads rows that it has just written.
        "    v = aten.clamp(w, -1.0, 1.0)\n    c = aten.select.int(v, 1, 5)\n    d = aten.detach(c)\n    s = "
        "aten.slice.Tensor(d, 0, 0, 2)\n    i = "
        "aten.arange(2, dtype=torch.int64)\n    a = aten.index_add_(c, 0, i, s)\n    o = aten.mul.Tensor(v, 1.0)\n    "
        "return o\n",
        "    v = aten.clamp(w, -1.0, 1.0)\n    c = aten.select.int(v, 1, 5)\n    d = aten.detach(c)\n    s = "
        "aten.slice.Tensor(d, 0, 1, 3)\n    t = "
        "aten.slice.Tensor(c, 0, 2, 4)\n    a = aten.copy_(t, s)\n    o = aten.mul.Tensor(v, 1.0)\n    return o\n",
        // Complex numbers.
        "    z1 = aten.mul.Scalar(z, 2.0)\n    r = aten.real(z1)\n    a = aten.mul_.Scalar(r, 2.0)\n    i = "
        "aten.view_as_real(z1)\n    i1 = aten.select.int(i, "
        "2, 1)\n    i2 = aten.add_.Scalar(i1, 1.0)\n    o = aten.abs(z1)\n    return o\n",
        "    z1 = aten.mul.Scalar(z, 2.0)\n    c = aten.conj(z1)\n    s = aten.slice.Tensor(c, 1, 0, 4, 3)\n    a = "
        "aten.mul_.Scalar(s, 3.0)\n    o = "
        "aten.view_as_real(z1)\n    return o\n",
        "    z1 = aten.mul.Scalar(z, 2.0)\n    d = aten.as_strided(z1, [3], [4], 1)\n    a = aten.mul_.Scalar(d, "
        "3.0)\n    o = aten.abs(z1)\n    return o\n",
        // An input that is written to has no gradient; what is written to a buffer is read by all its views.
        "    v = aten.view(b, [-1])\n    s = aten.slice.Tensor(v, 0, 0, 3)\n    a = aten.neg_(s)\n    o = "
        "aten.mul.Tensor(b, w)\n    return o\n",
        // A view that is made again inside no_grad keeps its gradient outside.
        "    v = aten.mul.Tensor(x, y)\n    r = aten.select.int(v, 0, 0)\n    a = aten.mul_.Tensor(v, 2.0)\n    def "
        "body(t):\n        # t: \"f64[6]\"\n        "
        "u = aten.mul.Tensor(t, 3.0)\n        return (u,)\n    g = "
        "torch.ops.higher_order.wrap_with_set_grad_enabled(False, body, r)\n    o = "
        "aten.mul.Tensor(r, g)\n    return o\n",
        // A write under no_grad changes the data and leaves the gradient.
        "    v = aten.mul.Tensor(x, y)\n    r = aten.select.int(v, 0, 0)\n    def body(t):\n        # t: \"f64[6]\"\n  "
        "      u = aten.mul_.Tensor(t, 3.0)\n    "
        "    return (u,)\n    g = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body, r)\n    o = "
        "aten.add.Tensor(v, w)\n    return o\n"));

// LibTorch refuses, and so do we, by name.
TEST(Writes, WhatHasNoOrderIsRefused) {
  const auto analysis =
      open("    v = aten.sum(x)\n    e = aten.expand(v, [3])\n    a = aten.add_.Scalar(e, 1.0)\n    return v\n");
  EXPECT_FALSE(analysis->derived());
  ASSERT_FALSE(analysis->problems.empty());
  EXPECT_NE(analysis->problems.back().place.find("aten.expand"), std::string::npos) << analysis->problems.back().place;
}

// LibTorch refuses to differentiate it on what is not contiguous, so finite differences are the judge.
TEST(Writes, StridedScatterOnTransposedMemory) {
  for (const auto* base : {"    v = aten.t(x)\n    u = aten.mul.Tensor(v, 1.0)\n",
                           "    v = aten.mul.Tensor(x, 1.0)\n    u = aten.slice.Tensor(v, 1, 1, 5)\n",
                           "    u = aten.mul.Tensor(x, 1.0)\n"}) {
    const auto analysis = open(std::string(base) +
                               "    s = aten.select.int(w, 0, 0)\n    s1 = aten.slice.Tensor(s, 0, 0, 3)\n    r = "
                               "aten.as_strided_scatter(u, s1, [3], [2], "
                               "3)\n    o = aten.sin(r)\n    return o\n");
    ASSERT_TRUE(analysis->derived());
    const auto check = checkGradients(*analysis, analysis->computation().trace.ops);
    ASSERT_GE(check.rows.size(), 2u);
    for (const auto& row : check.rows)
      EXPECT_LE(row.finiteDifferences, GradientCheck::finiteTolerance) << base << row.input << row.note;
  }
}

// Programs that were computed wrongly once, as written and with recomputation, a minimal cut and second
// derivatives.
TEST(Writes, ProgramsThatWereWrong) {
  for (const auto* name : {"21", "1039", "1132", "1385", "1671", "2488"}) {
    const auto folder = sourcePath("tests/data/programs/") + name;
    CheckOptions options;
    options.reference = folder + "/ref.safetensors";
    EXPECT_EQ(test::verdictOf(checkModel(folder + "/model.pt2", options)), Verdict::pass) << name;
    auto recomputed = options;
    recomputed.partition.emplace().recompute = {"all"};
    EXPECT_EQ(test::verdictOf(checkModel(folder + "/model.pt2", recomputed)), Verdict::pass) << name;
    auto twice = options;
    twice.order = 2;
    EXPECT_EQ(test::verdictOf(checkModel(folder + "/model.pt2", twice)), Verdict::pass) << name;
  }
}

// Circular padding writes to slices of its result, and these writes are differentiated again.
TEST(Writes, CircularPaddingTwice) {
  DerivationRequest options;
  options.order = 2;
  const auto analysis = open(
      "    r = aten.reshape(x, [1, 4, 6])\n    s = aten.sin(r)\n    p = aten._pad_circular(s, [2, 1])\n    o = "
      "aten.exp(p)\n    return o\n",
      options);
  ASSERT_TRUE(analysis->derived()) << (analysis->problems.empty() ? "" : analysis->problems.back().message);
  const auto ours = runSplit(*analysis);
  const auto eager = runEagerTwice(*analysis);
  ASSERT_TRUE(eager.gradients.contains("in.x"));
  for (const auto& [name, gradient] : eager.gradients) {
    if (isZero(gradient) && !ours.gradients.contains(name)) continue;
    ASSERT_TRUE(ours.gradients.contains(name)) << name;
    test::Comparison comparison;
    comparison.add(name, ours.gradients.at(name), gradient);
    EXPECT_LE(comparison.error(), 1e-12) << name << " " << comparison.failure();
  }
}

}  // namespace
}  // namespace retrograd::test

// Second derivatives of ops whose backward LibTorch does not differentiate: equal to those of the formula in double
// precision.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/torch/packs/libtorch/mathematical_forms.h"
#include "core/torch/tracing/extra_derivatives.h"

namespace retrograd::test {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

at::Tensor waves(const at::Tensor& like, double phase) {
  return at::sin(at::arange(like.numel(), like.options().requires_grad(false)) + phase).reshape(like.sizes());
}

/// Gradients of a weighted sum of all gradients, and these: undefined ones as zeros.
std::pair<Tensors, Tensors> derivatives(const Function& function, const Tensors& at) {
  Tensors inputs;
  for (const auto& tensor : at) inputs.push_back(tensor.detach().clone().requires_grad_(true));
  const auto output = function(inputs);
  const auto cotangent = waves(output.detach(), 0.3).requires_grad_(true);
  const auto first = torch::autograd::grad({output}, inputs, {cotangent}, true, true, true);
  auto total = at::zeros({}, output.options());
  for (const auto& gradient : first)
    if (gradient.defined()) total = total + (gradient * waves(gradient.detach(), 1)).sum();
  inputs.push_back(cotangent);
  auto second = torch::autograd::grad({total}, inputs, {}, true, false, true);
  for (std::size_t i = 0; i < second.size(); ++i)
    if (!second[i].defined()) second[i] = at::zeros_like(inputs[i]);
  return {first, second};
}

/// `ours` to second order as `formula`, which LibTorch differentiates by itself. `op`: the one whose formula is noted.
void expectSame(const char* op, const Function& ours, const Function& formula, const Tensors& at,
                double tolerance = 1e-10) {
  registerExtraDerivatives();
  takeMathematicalForms();
  const auto [first, second] = derivatives(ours, at);
  EXPECT_TRUE(takeMathematicalForms().contains(std::string("aten.") + op));
  const auto [expectedFirst, expectedSecond] = derivatives(formula, at);
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_TRUE(at::allclose(first[i], expectedFirst[i], tolerance, tolerance)) << op << ", gradient " << i;
  for (std::size_t i = 0; i < second.size(); ++i)
    EXPECT_TRUE(at::allclose(second[i], expectedSecond[i], tolerance, tolerance))
        << op << ", second derivative " << i << ": " << (second[i] - expectedSecond[i]).abs().max().item().toDouble();
}

const auto inDouble = at::TensorOptions().dtype(at::kDouble);

TEST(MathematicalForms, attention) {
  at::manual_seed(1);
  const Tensors qkv{at::randn({2, 3, 5, 4}, inDouble), at::randn({2, 3, 6, 4}, inDouble),
                    at::randn({2, 3, 6, 4}, inDouble)};
  const auto additive = at::randn({5, 6}, inDouble);
  const auto boolean = at::randn({2, 1, 5, 6}).gt(-0.5).logical_or(at::eye(5, 6).to(at::kBool));
  for (const auto& mask : {std::optional<at::Tensor>(), std::optional(additive), std::optional(boolean)})
    for (const bool causal : {false, true}) {
      if (mask && causal) continue;
      const auto fused = [&](const Tensors& t) {
        return at::scaled_dot_product_attention(t[0], t[1], t[2], mask, 0, causal, 0.7);
      };
      const auto formula = [&](const Tensors& t) {
        auto scores = t[0].matmul(t[1].transpose(-2, -1)) * 0.7;
        if (mask && mask->scalar_type() == at::kBool)
          scores = scores.masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
        else if (mask) scores = scores + *mask;
        if (causal)
          scores = scores.masked_fill(at::ones({5, 6}).triu(1).to(at::kBool), -std::numeric_limits<double>::infinity());
        return scores.softmax(-1).matmul(t[2]);
      };
      expectSame("_scaled_dot_product_flash_attention_for_cpu_backward", fused, formula, qkv);
    }
}

TEST(MathematicalForms, firstDerivativesStayWithTheFusedKernel) {
  registerExtraDerivatives();
  takeMathematicalForms();
  const auto q = at::randn({1, 2, 4, 4}).requires_grad_(true);
  at::scaled_dot_product_attention(q, q, q).sum().backward();
  EXPECT_TRUE(takeMathematicalForms().empty());
}

TEST(MathematicalForms, hardsigmoid) {
  const auto x = at::tensor({-4., -3., -2.9, 0.1, 2.9, 3., 4.}, inDouble);
  expectSame(
      "hardsigmoid_backward", [](const Tensors& t) { return at::hardsigmoid(t[0]) * t[0]; },
      [](const Tensors& t) {
        return at::where(t[0].gt(-3).logical_and(t[0].lt(3)), t[0] / 6 + 0.5, t[0].ge(3).to(at::kDouble)) * t[0];
      },
      {x},
      1e-7);  // LibTorch's kernel has 1 / 6 as a float
}

TEST(MathematicalForms, marginLosses) {
  at::manual_seed(4);
  const auto x = at::randn({3, 4}, inDouble), weight = at::rand({4}, inDouble);
  const auto target = at::tensor({2, 0, 3}).to(at::kLong);
  for (const std::int64_t p : {1, 2})
    for (const std::int64_t reduction : {0, 1, 2}) {
      const auto reduced = [&](const at::Tensor& rows) {
        return reduction == 0 ? rows : reduction == 1 ? rows.mean() : rows.sum();
      };
      expectSame(
          "multi_margin_loss_backward",
          [&](const Tensors& t) { return at::multi_margin_loss(t[0].sin(), target, p, 0.7, weight, reduction); },
          [&](const Tensors& t) {
            Tensors rows;
            for (int i = 0; i < 3; ++i) {
              const auto y = target[i].item().toLong();
              auto sum = at::zeros({}, inDouble);
              for (int j = 0; j < 4; ++j)
                if (j != y) sum = sum + (0.7 - t[0][i][y].sin() + t[0][i][j].sin()).clamp_min(0).pow(p) * weight[y] / 4;
              rows.push_back(sum);
            }
            return reduced(at::stack(rows));
          },
          {x});
    }
  const auto labels = at::tensor({3, 0, -1, 1, 1, -1, -1, -1, 0, 2, 1, -1}).to(at::kLong).reshape({3, 4});
  for (const std::int64_t reduction : {0, 1, 2}) {
    const auto reduced = [&](const at::Tensor& rows) {
      return reduction == 0 ? rows : reduction == 1 ? rows.mean() : rows.sum();
    };
    expectSame(
        "multilabel_margin_loss_backward",
        [&](const Tensors& t) { return at::multilabel_margin_loss(t[0].sin(), labels, reduction); },
        [&](const Tensors& t) {
          const std::vector<std::vector<std::int64_t>> targets{{3, 0}, {1}, {0, 2, 1}};
          Tensors rows;
          for (int i = 0; i < 3; ++i) {
            auto sum = at::zeros({}, inDouble);
            for (auto y : targets[i])
              for (std::int64_t j = 0; j < 4; ++j)
                if (std::find(targets[i].begin(), targets[i].end(), j) == targets[i].end())
                  sum = sum + (1 - t[0][i][y].sin() + t[0][i][j].sin()).clamp_min(0) / 4;
            rows.push_back(sum);
          }
          return reduced(at::stack(rows));
        },
        {x});
  }
}

TEST(MathematicalForms, embeddingBags) {
  at::manual_seed(2);
  const auto table = at::randn({7, 3}, inDouble);
  const auto indices = at::tensor({1, 4, 4, 0, 6, 2, 1, 5}), offsets = at::tensor({0, 3, 3, 7});
  const auto weights = at::rand({8}, inDouble);
  const std::vector<std::vector<std::int64_t>> bags{{0, 1, 2}, {}, {3, 4, 5, 6}, {7}};
  for (const std::int64_t mode : {0, 1, 2})
    for (const bool weighted : {false, true}) {
      if (weighted && mode != 0) continue;
      const auto ours = [&](const Tensors& t) {
        return std::get<0>(at::embedding_bag(t[0].sin(), indices, offsets, false, mode, false,
                                             weighted ? std::optional(t[1]) : std::nullopt, false, 5));
      };
      const auto formula = [&](const Tensors& t) {
        Tensors rows;
        for (const auto& bag : bags) {
          Tensors members;
          for (auto at : bag)
            if (indices[at].item().toLong() != 5)
              members.push_back(t[0][indices[at].item().toLong()].sin() *
                                (weighted ? t[1][at] : at::ones({}, inDouble)));
          if (members.empty()) rows.push_back(at::zeros({3}, inDouble));
          else
            rows.push_back(mode == 0   ? at::stack(members).sum(0)
                           : mode == 1 ? at::stack(members).mean(0)
                                       : std::get<0>(at::stack(members).max(0)));
        }
        return at::stack(rows);
      };
      const auto op = "_embedding_bag_backward";
      expectSame(op, ours, formula, weighted ? Tensors{table, weights} : Tensors{table});
    }
}

TEST(MathematicalForms, segmentReduce) {
  at::manual_seed(3);
  const auto data = at::randn({7, 2}, inDouble);
  const auto lengths = at::tensor({3, 2, 2});
  for (const char* reduce : {"sum", "mean", "max", "min"}) {
    const auto ours = [&](const Tensors& t) { return at::segment_reduce(t[0].sin(), reduce, lengths); };
    const auto formula = [&](const Tensors& t) {
      Tensors parts;
      std::int64_t begin = 0;
      for (const auto length : {3, 2, 2}) {
        const auto part = t[0].sin().slice(0, begin, begin + length);
        begin += length;
        const std::string name = reduce;
        if (name == "sum") parts.push_back(part.sum(0));
        else if (name == "mean") parts.push_back(part.mean(0));
        else parts.push_back(std::get<0>(name == "max" ? part.max(0) : part.min(0)));
      }
      return at::stack(parts);
    };
    expectSame("_segment_reduce_backward", ours, formula, {data});
  }
}

}  // namespace
}  // namespace retrograd::test

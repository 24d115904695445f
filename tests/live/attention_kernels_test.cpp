// Attention that has kernels for a GPU alone, on the CPU: equal to its formula in other ops, which LibTorch
// differentiates.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>

#include "core/torch/packs/packs.h"

namespace retrograd::test {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

const auto inDouble = at::TensorOptions().dtype(at::kDouble);

/// Result and gradients of query, key, value and, where there is one, the bias.
Tensors gradients(const Function& function, const Tensors& at) {
  Tensors inputs;
  for (const auto& tensor : at) inputs.push_back(tensor.detach().clone().requires_grad_(true));
  const auto output = function(inputs);
  const auto cotangent = at::sin(at::arange(output.numel(), inDouble)).reshape(output.sizes()).to(output.scalar_type());
  auto found = torch::autograd::grad({output}, inputs, {cotangent}, false, false, true);
  found.insert(found.begin(), output.detach());
  return found;
}

struct Case {
  std::int64_t keyHeads;
  bool isCausal, hasBias;
  std::optional<double> scale;
};

class AttentionKernels : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(provideFromPack("aten._scaled_dot_product_cudnn_attention.default"));
    at::manual_seed(3);
    const auto [keyHeads, isCausal, hasBias, scale] = GetParam();
    qkv = {at::randn({2, 4, 5, 6}, inDouble), at::randn({2, keyHeads, 5, 6}, inDouble),
           at::randn({2, keyHeads, 5, 6}, inDouble)};
    if (hasBias) qkv.push_back(at::randn({2, 4, 5, 5}, inDouble));
  }

  static at::Tensor formula(const Tensors& t) {
    const auto& p = GetParam();
    const auto each = [&](const at::Tensor& shared) { return shared.repeat_interleave(4 / p.keyHeads, 1); };
    auto scores = t[0].matmul(each(t[1]).transpose(-2, -1)) * p.scale.value_or(1 / std::sqrt(6.0));
    if (p.hasBias) scores = scores + t[3];
    if (p.isCausal)
      scores = scores.masked_fill(at::ones({5, 5}).triu(1).to(at::kBool), -std::numeric_limits<double>::infinity());
    return scores.softmax(-1).matmul(each(t[2]));
  }

  void expectSame(const Function& kernel, double tolerance = 1e-6) const {  // a logsumexp is kept in float
    const auto ours = gradients(kernel, qkv), theirs = gradients(formula, qkv);
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_TRUE(at::allclose(ours[i], theirs[i], tolerance, tolerance))
          << i << ": " << (ours[i] - theirs[i]).abs().max().item().toDouble();
  }

  Tensors qkv;
};

TEST_P(AttentionKernels, FlashIsItsFormula) {
  if (GetParam().hasBias) GTEST_SKIP() << "flash attention takes no bias";
  expectSame([](const Tensors& t) {
    return std::get<0>(
        at::_scaled_dot_product_flash_attention(t[0], t[1], t[2], 0, GetParam().isCausal, false, GetParam().scale));
  });
}

TEST_P(AttentionKernels, MemoryEfficientIsItsFormula) {
  expectSame([](const Tensors& t) {
    return std::get<0>(at::_scaled_dot_product_efficient_attention(t[0], t[1], t[2],
                                                                   t.size() > 3 ? std::optional(t[3]) : std::nullopt,
                                                                   true, 0, GetParam().isCausal, GetParam().scale));
  });
}

TEST_P(AttentionKernels, CudnnIsItsFormula) {
  if (GetParam().hasBias) qkv[3] = at::zeros_like(qkv[3]);  // cuDNN's bias has no gradient
  const auto bias = GetParam().hasBias ? std::optional(qkv.back().clone()) : std::nullopt;
  if (bias) qkv.pop_back();
  const auto kernel = [&](const Tensors& t) {
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(t[0], t[1], t[2], bias, true, 0, GetParam().isCausal,
                                                               false, GetParam().scale));
  };
  const auto ours = gradients(kernel, qkv), theirs = gradients(
                                                [&](const Tensors& t) {
                                                  auto all = t;
                                                  if (bias) all.push_back(*bias);
                                                  return formula(all);
                                                },
                                                qkv);
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-6, 1e-6)) << i;
}

INSTANTIATE_TEST_SUITE_P(All, AttentionKernels,
                         testing::Values(Case{4, false, false, {}}, Case{4, true, false, {}}, Case{2, true, false, 0.3},
                                         Case{1, false, false, {}}, Case{4, false, true, {}},
                                         Case{2, false, true, 0.7}));

// The backward finds the forward's dropout again in the seed.
TEST(AttentionDropout, TheBackwardRepeatsTheMaskOfTheSeed) {
  ASSERT_TRUE(provideFromPack("aten._scaled_dot_product_efficient_attention.default"));
  at::manual_seed(5);
  const auto q = at::randn({1, 2, 6, 4}, inDouble), k = at::randn({1, 2, 6, 4}, inDouble);
  // With one-hot values the result is the weights, dropped ones as zeros.
  const auto v = at::eye(6, inDouble).expand({1, 2, 6, 6}).contiguous().requires_grad_(true);
  const auto [weights, sums, seed, offset] = at::_scaled_dot_product_efficient_attention(q, k, v, {}, true, 0.5);
  const auto dropped = weights.eq(0).sum().item().toLong();
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, weights.numel());
  const auto g = at::randn({1, 2, 6, 6}, inDouble);
  const auto ofValue = torch::autograd::grad({weights}, {v}, {g}).front();
  EXPECT_TRUE(at::allclose(ofValue, weights.detach().transpose(-2, -1).matmul(g), 1e-6, 1e-6));
  EXPECT_FALSE(at::equal(std::get<0>(at::_scaled_dot_product_efficient_attention(q, k, v, {}, true, 0.5)), weights));
}

// Results have a GPU's shapes: cuDNN's logsumexp has a dimension more, the memory-efficient one's rows are padded,
// and memory keeps the query's order, which the reshapes behind it rely on.
TEST(AttentionShapes, AreThoseOfAGpu) {
  ASSERT_TRUE(provideFromPack("aten._scaled_dot_product_cudnn_attention.default"));
  for (const auto device : {at::kCPU, at::kMeta}) {
    const auto half = at::TensorOptions().dtype(at::kHalf).device(device);
    const auto q = at::zeros({2, 5, 3, 8}, half).transpose(1, 2);
    const auto cudnn = at::_scaled_dot_product_cudnn_attention(q, q, q, {}, true);
    EXPECT_EQ(std::get<1>(cudnn).sizes(), (std::vector<std::int64_t>{2, 3, 5, 1}));
    EXPECT_EQ(std::get<0>(cudnn).strides(), q.strides());
    EXPECT_EQ(std::get<0>(cudnn).scalar_type(), at::kHalf);
    const auto efficient = at::_scaled_dot_product_efficient_attention(q, q, q, {}, true);
    EXPECT_EQ(std::get<1>(efficient).sizes(), (std::vector<std::int64_t>{2, 3, 32}));
    EXPECT_EQ(std::get<0>(efficient).strides(), q.strides());
    const auto flash = at::_scaled_dot_product_flash_attention(q, q, q);
    EXPECT_EQ(std::get<6>(flash).scalar_type(), at::kUInt64);
    EXPECT_EQ(std::get<0>(flash).strides(), q.strides());
  }
}

}  // namespace
}  // namespace retrograd::test

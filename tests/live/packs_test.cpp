// Ops of packs: what they compute, their gradients to second order, and that files may name them and no others of their
// namespaces.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>

#include "core/formats/text/text_trace.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/packs/packs.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd::test {
namespace {

c10::IValue callOp(const char* name, torch::jit::Stack stack) {
  provideFromPack(std::string(name).replace(std::string(name).find("::"), 2, ".") + ".default");
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack.size() == 1 ? stack[0] : c10::ivalue::Tuple::create(std::move(stack));
}

at::Tensor groupedMm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets) {
  return callOp("transformers::grouped_mm_fallback", {input, weight, offsets}).toTensor();
}

/// Row by row, with ops that LibTorch differentiates.
at::Tensor groupedByRows(const at::Tensor& input, const at::Tensor& weight, const std::vector<std::int64_t>& ends) {
  std::vector<at::Tensor> rows;
  for (std::int64_t row = 0; row < input.size(0); ++row) {
    const auto group = std::find_if(ends.begin(), ends.end(), [&](auto end) { return row < end; }) - ends.begin();
    const bool isInGroup = group < std::ssize(ends);
    rows.push_back(input[row].unsqueeze(0).matmul(weight[isInGroup ? group : 0]) * (isInGroup ? 1.0 : 0.0));
  }
  return at::cat(rows);
}

std::vector<at::Tensor> gradients(const at::Tensor& output, const std::vector<at::Tensor>& inputs, bool again) {
  const auto cotangent =
      at::sin(at::arange(output.numel(), output.options().requires_grad(false))).reshape(output.sizes());
  return torch::autograd::grad({output}, inputs, {cotangent}, true, again, true);
}

/// First and second derivatives are those of the reference.
void expectSameDerivatives(const at::Tensor& ours, const at::Tensor& theirs, const std::vector<at::Tensor>& inputs) {
  ASSERT_TRUE(at::allclose(ours, theirs, 1e-12, 1e-12));
  const auto first = gradients(ours, inputs, true), expected = gradients(theirs, inputs, true);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(at::allclose(first[i], expected[i], 1e-12, 1e-12)) << "gradient " << i;
    if (!expected[i].requires_grad()) continue;
    const auto second = gradients(first[i], inputs, false), wanted = gradients(expected[i], inputs, false);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      EXPECT_TRUE(at::allclose(second[k].defined() ? second[k] : at::zeros_like(inputs[k]),
                               wanted[k].defined() ? wanted[k] : at::zeros_like(inputs[k]), 1e-12, 1e-12))
          << "gradient " << k << " of gradient " << i;
  }
}

const auto inDouble = at::TensorOptions().dtype(at::kDouble);

TEST(Packs, groupsOfRowsTimesTheirWeights) {
  at::manual_seed(1);
  const std::vector<std::vector<std::int64_t>> all{{2, 5, 7}, {0, 7, 7}, {0, 0, 0}, {7, 7, 7}, {1, 1, 4}};
  for (const auto& ends : all) {
    const auto input = at::randn({7, 3}, inDouble).requires_grad_(true),
               weight = at::randn({3, 3, 4}, inDouble).requires_grad_(true);
    for (auto type : {at::kInt, at::kLong})
      expectSameDerivatives(groupedMm(input, weight, at::tensor(ends).to(type)), groupedByRows(input, weight, ends),
                            {input, weight});
  }
}

TEST(Packs, groupedWeightsNeedNotBeContiguous) {
  at::manual_seed(2);
  const auto input = at::randn({6, 3}, inDouble).requires_grad_(true),
             memory = at::randn({2, 5, 3}, inDouble).requires_grad_(true);
  const auto weight = memory.transpose(1, 2);
  expectSameDerivatives(groupedMm(input, weight, at::tensor({4, 6})), groupedByRows(input, weight, {4, 6}),
                        {input, memory});
  const auto gradient = callOp("transformers::grouped_mm_fallback_backward",
                               {input.detach(), weight.detach(), at::tensor({4, 6}), at::ones({6, 5}, inDouble)});
  EXPECT_EQ(gradient.toTuple()->elements()[1].toTensor().strides(), weight.strides());
}

TEST(Packs, groupedShapesThatDoNotFitAreRefused) {
  EXPECT_THROW(groupedMm(at::randn({4, 3}), at::randn({2, 4, 5}), at::tensor({1, 4})), c10::Error);
  EXPECT_THROW(groupedMm(at::randn({4, 3}), at::randn({2, 3, 5}), at::tensor({1, 2, 4})), c10::Error);
  EXPECT_THROW(groupedMm(at::randn({4, 3}), at::randn({2, 3, 5}), at::tensor({1.0, 4.0})), c10::Error);
}

TEST(Packs, groupedMmOfLibTorchKnowsItsShapeWithoutData) {
  provideFromPack("aten._grouped_mm.default");
  const auto meta = [](const at::Tensor& t) {
    return at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kMeta));
  };
  const auto offsets = at::tensor({16, 32}).to(at::kInt);
  for (const auto& [a, b] :
       {std::pair(at::randn({32, 16}), at::randn({2, 16, 24})), std::pair(at::randn({16, 32}), at::randn({32, 24})),
        std::pair(at::randn({32, 16}), at::randn({2, 22, 16}).transpose(1, 2))}) {
    const auto real = at::_grouped_mm(a.to(at::kBFloat16), b.to(at::kBFloat16), offsets),
               shape = at::_grouped_mm(meta(a.to(at::kBFloat16)), meta(b.to(at::kBFloat16)), meta(offsets));
    EXPECT_EQ(real.sizes(), shape.sizes());
    EXPECT_EQ(real.strides(), shape.strides());
    EXPECT_EQ(real.scalar_type(), shape.scalar_type());
  }
}

TEST(Packs, nmsKeepsTheBestOfBoxesThatOverlap) {
  const auto boxes =
      at::tensor({0.f, 0.f, 10.f, 10.f, 1.f, 1.f, 11.f, 11.f, 20.f, 20.f, 30.f, 30.f, 0.f, 0.f, 10.f, 5.f})
          .reshape({4, 4});
  const auto scores = at::tensor({0.5f, 0.9f, 0.1f, 0.5f});
  const auto kept = [&](double threshold) { return callOp("torchvision::nms", {boxes, scores, threshold}).toTensor(); };
  EXPECT_TRUE(at::equal(kept(0.5), at::tensor({1, 3, 2})));  // 0 overlaps 1 by 81 / 119
  EXPECT_TRUE(at::equal(kept(0.7), at::tensor({1, 0, 3, 2})));
  EXPECT_TRUE(at::equal(kept(0.0), at::tensor({1, 2})));
  EXPECT_EQ(callOp("torchvision::nms", {at::zeros({0, 4}), at::zeros({0}), 0.5}).toTensor().numel(), 0);
  EXPECT_THROW(callOp("torchvision::nms", {at::zeros({2, 3}), at::zeros({2}), 0.5}), c10::Error);
}

at::Tensor roiAlign(const at::Tensor& input, const at::Tensor& regions, double scale, std::int64_t height,
                    std::int64_t width, std::int64_t samples, bool aligned) {
  return callOp("torchvision::roi_align", {input, regions, scale, height, width, samples, aligned}).toTensor();
}

TEST(Packs, roiAlignOfALinearPictureIsTheMiddleOfEachCell) {
  // A bilinear sample of a linear function is the function: the mean over a cell is its value in the middle.
  const auto x = at::arange(16, inDouble).expand({16, 16}), y = x.t();
  const auto picture = (2 * x + 3 * y).reshape({1, 1, 16, 16});
  const auto regions = at::tensor({0., 2., 4., 10., 12.}, inDouble).reshape({1, 5});
  for (const std::int64_t samples : {0, 1, 2, 3}) {
    const auto result = roiAlign(picture, regions, 1.0, 2, 4, samples, true);
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 4; ++j)
        EXPECT_NEAR(result[0][0][i][j].item().toDouble(), 2 * (2 - 0.5 + (j + 0.5) * 2) + 3 * (4 - 0.5 + (i + 0.5) * 4),
                    1e-12)
            << samples;
  }
}

TEST(Packs, roiAlignIsLinearAndItsGradientsAreItsTranspose) {
  at::manual_seed(3);
  const auto input = at::randn({2, 3, 8, 9}, inDouble).requires_grad_(true);
  const auto regions =
      at::tensor({0., 0.3, 1.2, 6.7, 7.1, 1., -2.0, 3.0, 4.0, 12.0, 1., 2., 2., 2.2, 2.1}, inDouble).reshape({3, 5});
  for (const bool aligned : {false, true})
    for (const std::int64_t samples : {0, 2}) {
      const auto result = roiAlign(input, regions, 0.9, 3, 2, samples, aligned);
      const auto cotangent = at::randn(result.sizes(), inDouble).requires_grad_(true);
      const auto gradient = torch::autograd::grad({result}, {input}, {cotangent}, true, true)[0];
      EXPECT_NEAR((result * cotangent).sum().item().toDouble(), (gradient * input).sum().item().toDouble(), 1e-10);
      const auto direction = at::randn(input.sizes(), inDouble);
      const auto again = torch::autograd::grad({gradient}, {cotangent}, {direction})[0];
      EXPECT_TRUE(at::allclose(again, roiAlign(direction, regions, 0.9, 3, 2, samples, aligned), 1e-12, 1e-12));
    }
}

TEST(Packs, regionsThatAreNoneAreRefused) {
  const auto input = at::randn({1, 1, 4, 4});
  EXPECT_THROW(roiAlign(input, at::tensor({1.f, 0.f, 0.f, 2.f, 2.f}).reshape({1, 5}), 1, 2, 2, 0, true), c10::Error);
  EXPECT_THROW(roiAlign(input, at::tensor({0.f, 0.f, 0.f, 1e30f, 2.f}).reshape({1, 5}), 1, 2, 2, 0, true), c10::Error);
  EXPECT_THROW(
      roiAlign(input, at::tensor({0.f, 0.f, 0.f, std::numeric_limits<float>::quiet_NaN(), 2.f}).reshape({1, 5}), 1, 2,
               2, 0, true),
      c10::Error);
}

TEST(Packs, filesMayNameTheirOpsAndNoOthers) {
  EXPECT_TRUE(lookupSymbol("transformers.grouped_mm_fallback.default"));
  EXPECT_TRUE(lookupSymbol("transformers.grouped_mm_fallback_backward.default"));
  EXPECT_TRUE(lookupSymbol("torchvision.nms.default")->needsData);
  EXPECT_FALSE(lookupSymbol("transformers.other.default"));
  EXPECT_FALSE(lookupSymbol("torchvision.nms.other"));
  EXPECT_FALSE(lookupSymbol("torchvision.read_file.default"));
  std::vector<std::string> names;
  for (const auto& pack : opPacks()) {
    names.push_back(pack.name);
    for (const auto& op : pack.ops) EXPECT_TRUE(lookupSymbol(op)) << op;
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(Packs, theJointOfAMixtureIsAsEager) {
  const auto analysis = analyse(readTextModel(R"(
def computation(x, w, offsets):
    # x: "f32[6, 3]"
    # w: "f32[2, 4, 3]", parameter
    # offsets: "i32[2]"
    t = aten.transpose.int(w, -2, -1)
    y = torch.ops.transformers.grouped_mm_fallback.default(x, t, offsets)
    z = aten.silu(y)
    return z
)",
                                              "mixture.txt", lookupSymbol),
                                {});
  ASSERT_TRUE(analysis->derived()) << analysis->problems.back().message;
  EXPECT_FALSE(analysis->leftOut);
  EXPECT_TRUE(analysis->dataDependent.empty());
  const auto run = runJoint(*analysis), eager = runEager(*analysis);
  for (const auto* name : {"in.x", "p.w"})
    EXPECT_TRUE(at::equal(borrowTensor(run.gradients.at(name)), borrowTensor(eager.gradients.at(name)))) << name;
}

}  // namespace
}  // namespace retrograd::test

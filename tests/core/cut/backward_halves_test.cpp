#include "core/cut/backward_halves.h"

#include "core/trace/verifier.h"
#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

/// d = cotangent of the result; x's gradient needs d and w, w's needs d and x.
constexpr const char* text = R"(
def computation(w, x):
    # w: "f32[4, 4]", parameter w
    # x: "f32[4, 4]"
    y = aten.mm(x, w)  # y: "f32[4, 4]"
    z = aten.sin(y)  # z: "f32[4, 4]"
    return z

def backward(y, x, w, cotangent_0):
    # y: "f32[4, 4]", saved for backward
    # x: "f32[4, 4]", input, saved for backward
    # w: "f32[4, 4]", parameter w, saved for backward
    # cotangent_0: "f32[4, 4]", cotangent
    a = aten.cos(y)  # a: "f32[4, 4]", forward: z: "torch.ops.aten.sin.default", gradient of y
    b = aten.mul.Tensor(cotangent_0, a)  # b: "f32[4, 4]", forward: z: "torch.ops.aten.sin.default", gradient of y
    c = aten.t(x)  # c: "f32[4, 4] strides [1, 4]", forward: y: "torch.ops.aten.mm.default", gradient of w
    d = aten.mm(c, b)  # d: "f32[4, 4]", forward: y: "torch.ops.aten.mm.default", gradient of w
    e = aten.t(w)  # e: "f32[4, 4] strides [1, 4]", forward: y: "torch.ops.aten.mm.default", gradient of x
    f = aten.mm(b, e)  # f: "f32[4, 4]", forward: y: "torch.ops.aten.mm.default", gradient of x
    return (d, f)
)";

Names names(const Document& document, const std::vector<ValueId>& values) {
  Names found;
  for (auto value : values) found.push_back(document.displayName(value));
  return found;
}
Names made(const Document& document, const Trace& trace) {
  Names found;
  for (auto op : trace.ops) found.push_back(document.displayName(document.outputs(op)[0]));
  return found;
}

TEST(BackwardHalves, InputsComeFirstAndWeightsFromWhatIsLeft) {
  const auto traces = readTextTraces(text, "model.txt", pipelineLookup);
  const auto& document = *traces.document;
  const auto halves = splitBackward(document, *traces.find(TraceKind::backward), {0, 1});
  EXPECT_EQ(made(document, halves.inputGradients), (Names{"a", "b", "e", "f"}));
  EXPECT_EQ(names(document, halves.inputGradients.outputs), (Names{"f", "b"}));
  EXPECT_EQ(halves.inputGradients.resultCount, 1u);
  EXPECT_EQ(made(document, halves.weightGradients), (Names{"c", "d"}));
  EXPECT_EQ(names(document, halves.weightGradients.inputs), (Names{"x", "b"}));
  EXPECT_EQ(names(document, halves.weightGradients.outputs), Names{"d"});
  for (const auto* half : {&halves.inputGradients, &halves.weightGradients})
    for (const auto& problem : verify(document, *half)) ADD_FAILURE() << problem.place << ": " << problem.message;
}

// Holds P61: the first stage, whose input needs no gradient, has all of its backward in dW.
TEST(BackwardHalves, WithoutInputGradientsAllIsLeftForLater) {
  const auto traces = readTextTraces(text, "model.txt", pipelineLookup);
  const auto halves = splitBackward(*traces.document, *traces.find(TraceKind::backward), {0, 0});
  EXPECT_TRUE(halves.inputGradients.ops.empty());
  EXPECT_EQ(halves.weightGradients.ops.size(), 6u);
}

TEST(BackwardHalves, WritesKeepTheirOrder) {
  std::string written = text;
  const std::string product = "b = aten.mul.Tensor(cotangent_0, a)  # b: \"f32[4, 4]\"";
  written.replace(written.find(product), product.size(),
                  "b = aten.mul_.Tensor(a, cotangent_0)  # b: \"f32[4, 4]\", shares a, version 1");
  const auto traces = readTextTraces(written, "model.txt", pipelineLookup);
  const auto halves = splitBackward(*traces.document, *traces.find(TraceKind::backward), {0, 0});
  EXPECT_EQ(made(*traces.document, halves.inputGradients), (Names{"a", "b", "c", "d", "e", "f"}))
      << "what reads the written memory stays with the write";
  EXPECT_TRUE(halves.weightGradients.ops.empty());
}

}  // namespace
}  // namespace retrograd

#include "core/cut/stage_model.h"

#include "core/trace/print/printer.h"
#include "core/trace/relocate.h"
#include "core/trace/verifier.h"
#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

constexpr const char* text = R"(
def computation(w, x, n):
    # w: "f32[4, 4]", parameter layer.weight
    # x: "f32[4, 4]"
    # n: "f32[4, 4]"
    # module: layer
    a = aten.mm(x, w)  # a: "f32[4, 4]"
    t = aten.t(a)  # t: "f32[4, 4] strides [1, 4]", shares a
    s = aten.slice.Tensor(t, 0, 0, 2)  # s: "f32[2, 4] strides [1, 4]", shares a
    pippy._pipe_split.default()
    b = aten.mul_.Tensor(t, n)  # b: "f32[4, 4] strides [1, 4]", shares a, version 1
    def body(y):
        c = aten.cos(y)  # c: "f32[4, 4]"
        return (c,)
    d = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body, b)  # d: "f32[4, 4]"
    return d
)";

StageModel stageOf(const ModelFile& model, std::size_t s) {
  return stageModel(model, splitAtMarkers(model), s, pipelineLookup);
}

std::string printed(const ModelFile& model) {
  PrintOptions options;
  options.computation = &model.computation;
  return printTrace(*model.document, model.computation.trace, options);
}

TEST(StageModel, IsAModelOfItsOwn) {
  const auto model = modelOf(text);
  for (std::size_t s = 0; s < 2; ++s) {
    const auto stage = stageOf(model, s);
    for (const auto& problem : verify(*stage.file.document, stage.file.computation.trace))
      ADD_FAILURE() << s << ": " << problem.place << ": " << problem.message;
    const auto again = modelOf(printed(stage.file));
    EXPECT_EQ(printed(again).substr(printed(again).find("def ")),
              printed(stage.file).substr(printed(stage.file).find("def ")))
        << "what it prints reads back";
  }
  const auto first = stageOf(model, 0);
  EXPECT_EQ(first.file.computation.inputs.size(), 2u) << "n is the second stage's";
  EXPECT_EQ(first.file.computation.inputs[0].target, "layer.weight");
  EXPECT_EQ(first.file.document->symbolCount(), 3u) << "mm, t and slice, and nothing of other stages";
}

// Holds P36: what a stage holds keeps the name that it has in the model, all of it.
// Holds P42: and a buffer that was in no state dict comes into none.
TEST(StageModel, WhatIsHeldKeepsItsNameAndWhetherItPersists) {
  const auto model = modelOf(R"(
def computation(w, m, r, x):
    # w: "f32[4]", parameter layers.1.net.0.weight
    # m: "f32[4]", buffer layers.1.mask, not persistent
    # r: "f32[4]", buffer layers.1.mean
    # x: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    pippy._pipe_split.default()
    b = aten.mul.Tensor(a, w)  # b: "f32[4]"
    c = aten.mul.Tensor(b, m)  # c: "f32[4]"
    d = aten.mul.Tensor(c, r)  # d: "f32[4]"
    return d
)");
  const auto stage = stageOf(model, 1);
  const auto& inputs = stage.file.computation.inputs;
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_EQ(inputs[0].target, "layers.1.net.0.weight");
  EXPECT_EQ(inputs[1].target, "layers.1.mask");
  EXPECT_FALSE(inputs[1].persistent);
  EXPECT_EQ(inputs[2].target, "layers.1.mean");
  EXPECT_TRUE(inputs[2].persistent);
}

TEST(StageModel, OriginsLeadBackToTheWholeModel) {
  const auto model = modelOf(text);
  const auto stage = stageOf(model, 1);
  const auto& document = *stage.file.document;
  ASSERT_EQ(stage.originOf.size(), document.boundSymbolCount());
  ASSERT_EQ(stage.valueOf.size(), document.valueCount());
  std::size_t copies = 0;
  for (auto op : stage.originOf.ids()) {
    if (!stage.originOf[op]) {
      ++copies;
      EXPECT_EQ(document.opName(op), "torch.ops.aten.clone.default");
      continue;
    }
    EXPECT_EQ(document.opName(op), model.document->opName(stage.originOf[op]));
  }
  EXPECT_EQ(copies, 1u);
  for (auto value : stage.valueOf.ids())
    if (stage.valueOf[value]) {
      EXPECT_EQ(document.displayName(value), model.document->displayName(stage.valueOf[value]));
    }
}

// Holds P29a: what arrives and is written to is copied, so that it keeps its gradient.
TEST(StageModel, AReceivedValueIsCopiedBeforeItIsWritten) {
  const auto model = modelOf(text);
  const auto stage = stageOf(model, 1);
  const auto lines = printed(stage.file);
  EXPECT_NE(lines.find("t_copy = torch.ops.aten.clone.default(t)"), std::string::npos) << lines;
  EXPECT_NE(lines.find("b = torch.ops.aten.mul_.Tensor(t_copy, n)"), std::string::npos) << lines;
}

TEST(StageModel, WhatIsSentArrivesInItsStridesInMemoryOfItsOwn) {
  TensorMeta meta;
  meta.sizes = {4, 4};
  meta.strides = {1, 4};
  meta.offset = 3;
  EXPECT_EQ(sentMeta(meta).strides, (std::vector<std::int64_t>{1, 4})) << "dense in another order";
  EXPECT_EQ(sentMeta(meta).offset, 0);
  meta.strides = {8, 2};
  EXPECT_EQ(sentMeta(meta).strides, (std::vector<std::int64_t>{8, 2})) << "with gaps";
  meta.strides = {0, 1};
  EXPECT_EQ(sentMeta(meta).strides, (std::vector<std::int64_t>{0, 1})) << "expanded";
}

// Holds P32: devices given as keyword or by position, in regions too.
TEST(StageModel, DeviceLiteralsFollowTheStage) {
  auto model = modelOf(R"(
def computation(x):
    # x: "f32[4]"
    a = aten.full([4], 1, device=torch.device("cpu"))  # a: "f32[4]"
    def body(y):
        b = mylib.fill.default(y, torch.device("cpu"))  # b: "f32[4]"
        return (b,)
    c = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body, a)  # c: "f32[4]"
    return c
)");
  relocate(*model.document, deviceFromString("cuda:1"));
  const auto lines = printed(model);
  EXPECT_EQ(lines.find("cpu"), std::string::npos) << lines;
  EXPECT_NE(lines.find("torch.ops.mylib.fill.default(y, torch.device(\"cuda:1\"))"), std::string::npos) << lines;
  EXPECT_NE(lines.find("c: \"cuda:1 f32[4]\""), std::string::npos) << lines;
}

}  // namespace
}  // namespace retrograd

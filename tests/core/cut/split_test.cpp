#include "core/cut/pipeline_split.h"

#include "core/cut/json.h"
#include "core/trace/verifier.h"
#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

constexpr const char* skips = R"(
def computation(x, y, target, w, u, unused):
    # x: "f32[4, 4]"
    # y: "f32[4, 4]"
    # target: "f32[4, 4]"
    # w: "f32[4, 4]", parameter first.weight
    # u: "f32[4, 4]", parameter last.weight
    # unused: "f32[7]", parameter unused.weight
    a = aten.mm(x, w)  # a: "f32[4, 4]"
    b = aten.sin(a)  # b: "f32[4, 4]"
    pippy._pipe_split.default()
    c = aten.cos(b)  # c: "f32[4, 4]"
    d = aten.mul.Tensor(c, y)  # d: "f32[4, 4]"
    pippy._pipe_split.default()
    e = aten.add.Tensor(d, a)  # e: "f32[4, 4]"
    f = aten.mm(e, u)  # f: "f32[4, 4]"
    g = aten.add.Tensor(f, b)  # g: "f32[4, 4]"
    h = aten.sub.Tensor(g, target)  # h: "f32[4, 4]"
    loss = aten.sum(h)  # loss: "f32[]"
    return loss, b
)";

// Holds P22, P23, P24: what a stage gets is what it uses, each value from the stage that makes it, in the order of
// first use.
TEST(Split, ValuesCrossOncePerUserFromWhereTheyAreMade) {
  const auto model = modelOf(skips);
  const auto split = splitAtMarkers(model);
  EXPECT_EQ(edgesOf(model, split),
            (Names{"in>0 x", "0>1 b[0]", "in>1 y", "1>2 d[0]", "0>2 a[1]", "0>2 b[0]", "in>2 target"}));
}

// Holds P25: a value of stage 0 that the model returns is returned from there, not sent on.
TEST(Split, ResultsAreReturnedWhereTheyAreMade) {
  const auto model = modelOf(skips);
  const auto split = splitAtMarkers(model);
  ASSERT_EQ(split.stages.at(0).outputs.size(), 2u);
  EXPECT_EQ(split.stages.at(0).outputs[0].results, std::vector<std::size_t>{1});
  EXPECT_EQ(split.stages.at(0).outputs[0].destinations, (std::vector<int>{1, 2}));
  ASSERT_EQ(split.stages.at(2).outputs.size(), 1u);
  EXPECT_EQ(split.stages.at(2).outputs[0].results, std::vector<std::size_t>{0});
  EXPECT_TRUE(split.stages.at(2).outputs[0].destinations.empty());
}

// Holds P25: also where no other stage uses it.
TEST(Split, AResultOfTheFirstStageCrossesNoBorder) {
  const auto model = modelOf(R"(
def computation(x):
    # x: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    r = aten.cos(x)  # r: "f32[4]"
    pippy._pipe_split.default()
    b = aten.exp(a)  # b: "f32[4]"
    return b, r
)");
  const auto split = splitAtMarkers(model);
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 a[0]"}));
  ASSERT_EQ(split.stages.at(0).outputs.size(), 2u);
  EXPECT_EQ(split.stages.at(0).outputs[1].results, std::vector<std::size_t>{1});
}

TEST(Split, ParametersGoToTheirOneStage) {
  const auto model = modelOf(skips);
  const auto split = splitAtMarkers(model);
  EXPECT_EQ(heldBy(model, split.stages.at(0)), Names{"first.weight"});
  EXPECT_EQ(heldBy(model, split.stages.at(1)), Names{});
  EXPECT_EQ(heldBy(model, split.stages.at(2)), Names{"last.weight"});
  EXPECT_EQ(split.unused, Names{"unused.weight"});
  EXPECT_TRUE(split.shared.empty());
}

// Holds P35, P45: what several ops of a stage use is held once, or sent once.
TEST(Split, WhatAStageUsesTwiceItHasOnce) {
  const auto model = modelOf(R"(
def computation(x, w):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    a = aten.mm(x, w)  # a: "f32[4, 4]"
    b = aten.mm(a, w)  # b: "f32[4, 4]"
    pippy._pipe_split.default()
    c = aten.mul.Tensor(b, x)  # c: "f32[4, 4]"
    d = aten.mul.Tensor(b, x)  # d: "f32[4, 4]"
    e = aten.add.Tensor(c, d)  # e: "f32[4, 4]"
    return e
)");
  const auto split = splitAtMarkers(model);
  EXPECT_EQ(heldBy(model, split.stages.at(0)), Names{"w"});
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 b[0]", "in>1 x"}));
}

TEST(Split, InputsThatNobodyUsesAreNamed) {
  const auto model = modelOf(
      "def computation(x, y):\n    # x: \"f32[4]\"\n    # y: \"f32[4]\"\n    a = aten.mul.Tensor(y, y)  # a: "
      "\"f32[4]\"\n    return a\n");
  EXPECT_EQ(unusedInputs(*model.document, model.computation), Names{"x"});
}

// Holds P22, P28: each result of an op with several crosses by itself where it is used, numbers as well.
TEST(Split, SeveralResultsAndNumbersCross) {
  const auto model = modelOf(R"(
def computation(x):
    # x: "f32[4, 4]"
    v, i = aten.max.dim(x, 1)  # v: "f32[4]", i: "i64[4]"
    n = aten.sym_size.int(x, 0)
    [p, q] = aten.chunk(x, 2)  # p: "f32[2, 4]", q: "f32[2, 4]"
    m = aten.gt.Scalar(v, 0)  # m: "b8[4]"
    pippy._pipe_split.default()
    a = aten.view(q, [n, 2])  # a: "f32[4, 2]"
    b = aten.index.Tensor(a, [i])  # b: "f32[4, 2]"
    c = aten.index.Tensor(b, [m])  # c: "f32[4, 2]"
    return c, p
)");
  const auto split = splitAtMarkers(model);
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 q[0]", "0>1 n[1]", "0>1 i[2]", "0>1 m[3]"}));
  const auto number = describeEdge(model, split.edges.at(2));
  EXPECT_EQ(number.dtype, "torch.int64");
  EXPECT_EQ(number.bytes, 8);
  EXPECT_EQ(describeEdge(model, split.edges.at(4)).dtype, "torch.bool");
}

constexpr const char* dead = R"(
def computation(x):
    # x: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    pippy._pipe_split.default()
    b = aten.cos(x)  # b: "f32[4]"
    pippy._pipe_split.default()
    c = aten.exp(a)  # c: "f32[4]"
    return c
)";

// Holds P26: numbers stay dense.
TEST(Split, AStageThatNobodyNeedsIsLeftOut) {
  const auto model = modelOf(dead);
  const auto split = splitAtMarkers(model);
  ASSERT_EQ(split.stages.size(), 2u);
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 a[0]"}));
  ASSERT_EQ(split.notes.size(), 1u);
  EXPECT_NE(split.notes[0].find("1 op from b on"), std::string::npos);
}

// Holds P26, P29: what draws or writes keeps its stage.
TEST(Split, AStageWithAnEffectStays) {
  for (const std::string effect : {"b = aten.dropout(x, 0.5, True)  # b: \"f32[4]\"",
                                   "b = aten.add_.Tensor(a, x)  # b: \"f32[4]\", shares a, version 1"}) {
    std::string text = dead;
    const std::string pure = "b = aten.cos(x)  # b: \"f32[4]\"";
    text.replace(text.find(pure), pure.size(), effect);
    EXPECT_EQ(splitAtMarkers(modelOf(text)).stages.size(), 3u) << effect;
  }
}

// Holds P27: a stage that only feeds the loss stays where it is in the order.
TEST(Split, StagesKeepTheirOrder) {
  const auto model = modelOf(R"(
def computation(x):
    # x: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    pippy._pipe_split.default()
    b = aten.cos(x)  # b: "f32[4]"
    pippy._pipe_split.default()
    c = aten.exp(a)  # c: "f32[4]"
    pippy._pipe_split.default()
    loss = aten.add.Tensor(c, b)  # loss: "f32[4]"
    return loss
)");
  EXPECT_EQ(edgesOf(model, splitAtMarkers(model)), (Names{"in>0 x", "in>1 x", "0>2 a[0]", "2>3 c[0]", "1>3 b[0]"}));
}

constexpr const char* tied = R"(
def computation(e, l, o, i):
    # e: "f32[4, 4]", parameter e.weight, also o.weight
    # l: "f32[4, 4]", parameter l.weight
    # o: "f32[4, 4]", parameter o.weight, also e.weight, shares e
    # i: "f32[4, 4]"
    # module: e
    a = aten.mm(i, o)  # a: "f32[4, 4]"
    pippy._pipe_split.default()
    # module: l
    b = aten.mm(a, l)  # b: "f32[4, 4]"
    pippy._pipe_split.default()
    c = aten.mm(b, l)  # c: "f32[4, 4]"
    # module: o
    d = aten.mm(c, o)  # d: "f32[4, 4]"
    return d
)";

// Holds P37, P38, P39, P40: each stage has one copy under the name it is used by, and all names are listed.
TEST(Split, SharedParametersAreReplicatedUnderTheirNames) {
  const auto model = modelOf(tied);
  const auto split = splitAtMarkers(model);
  const auto names = [&](std::size_t s) {
    Names found;
    for (const auto& parameter : stageParameters(model, split, s)) found.push_back(parameter.name);
    return found;
  };
  EXPECT_EQ(names(0), Names{"e.weight"});
  EXPECT_EQ(names(1), Names{"l.weight"});
  EXPECT_EQ(names(2), (Names{"l.weight", "o.weight"}));
  ASSERT_EQ(split.shared.size(), 2u);
  EXPECT_EQ(split.shared[0].names, (Names{"e.weight", "o.weight"}));
  EXPECT_EQ(split.shared[0].nameIn, (std::map<int, std::string>{{0, "e.weight"}, {2, "o.weight"}}));
  EXPECT_EQ(split.shared[1].nameIn, (std::map<int, std::string>{{1, "l.weight"}, {2, "l.weight"}}));
}

// Holds P37 as PyTorch meant it: TRANSMIT sends the parameter from the first stage that uses it, for all or by name.
TEST(Split, SharedParametersAreTransmittedWhereAskedFor) {
  const auto model = modelOf(tied);
  PipelineOptions options;
  options.multiUse = MultiUse::transmit;
  auto split = splitAtMarkers(model, options);
  EXPECT_EQ(heldBy(model, split.stages.at(2)), Names{});
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 i", "0>1 a[0]", "1>2 b[0]", "1>2 l[1]", "0>2 o[1]"}));
  options = {};
  options.multiUseOf["e.weight"] = MultiUse::transmit;
  split = splitAtMarkers(model, options);
  EXPECT_EQ(heldBy(model, split.stages.at(2)), Names{"l.weight"});
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 i", "0>1 a[0]", "1>2 b[0]", "0>2 o[1]"}));
}

constexpr const char* buffers = R"(
def computation(m, r, k, j, x):
    # m: "f32[4]", buffer m
    # r: "f32[4]", buffer r
    # k: "f32[4]", constant k
    # j: "f32[4]", constant j
    # x: "f32[4]"
    a = aten.mul.Tensor(x, r)  # a: "f32[4]"
    b = aten.add_.Tensor(m, a)  # b: "f32[4]", shares m, version 1
    c = aten.neg(k)  # c: "f32[4]"
    pippy._pipe_split.default()
    d = aten.mul.Tensor(a, r)  # d: "f32[4]"
    e = aten.mul.Tensor(d, m)  # e: "f32[4]"
    f = aten.mul.Tensor(e, c)  # f: "f32[4]"
    h = aten.mul.Tensor(f, j)  # h: "f32[4]"
    return h
)";

// Holds P42: a buffer that is read is copied, one that is written stays and its content is sent on.
// Holds P43: a constant stays where it is used and what is made of it is sent.
TEST(Split, BuffersAndConstantsHaveAnOwner) {
  const auto model = modelOf(buffers);
  const auto split = splitAtMarkers(model);
  EXPECT_EQ(heldBy(model, split.stages.at(0)), (Names{"m", "r", "k"}));
  EXPECT_EQ(heldBy(model, split.stages.at(1)), (Names{"r", "j"}));
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 a[0]", "0>1 m[1]", "0>1 c[2]"}));
  EXPECT_EQ(split.mutationOwner, (std::map<std::size_t, int>{{0, 0}}));
}

// Holds P42: nothing is sent back from one run to the next.
TEST(Split, ABufferReadBeforeItsOwnerIsRefused) {
  std::string text = buffers;
  const std::string write = "    b = aten.add_.Tensor(m, a)  # b: \"f32[4]\", shares m, version 1\n";
  text.erase(text.find(write), write.size());
  text.replace(text.find("    c = "), 0, "    s = aten.sin(m)  # s: \"f32[4]\"\n");
  text.replace(text.find("    return"), 0, "    b = aten.add_.Tensor(m, s)  # b: \"f32[4]\", shares m, version 1\n");
  const auto model = modelOf(text);
  EXPECT_NE(errorOf([&] { splitAtMarkers(model); }).find("it reads buffer m, which stage 1 writes to"),
            std::string::npos)
      << errorOf([&] { splitAtMarkers(model); });
}

TEST(Split, ABufferHasOneOwner) {
  std::string text = buffers;
  text.replace(text.find("    return"), 0, "    g = aten.add_.Tensor(m, f)  # g: \"f32[4]\", shares m, version 2\n");
  const auto model = modelOf(text);
  EXPECT_NE(errorOf([&] { splitAtMarkers(model); }).find("it writes to buffer m, which stage 0 writes to as well"),
            std::string::npos);
}

constexpr const char* written = R"(
def computation(x):
    # x: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    v = aten.slice.Tensor(a, 0, 0, 2)  # v: "f32[2]"
    pippy._pipe_split.default()
    b = aten.mul_.Tensor(a, x)  # b: "f32[4]", shares a, version 1
    pippy._pipe_split.default()
    c = aten.cos(a)  # c: "f32[4]"
    return c
)";

// Holds P29a: the stage that writes works on a copy of its own, and who reads afterwards gets the value from there.
TEST(Split, AWriteToAReceivedValueIsSentOn) {
  const auto model = modelOf(written);
  const auto split = splitAtMarkers(model);
  EXPECT_EQ(edgesOf(model, split), (Names{"in>0 x", "0>1 a[0]", "in>1 x", "1>2 a[0]"}));
  ASSERT_EQ(split.stages.at(1).cloned.size(), 1u);
  EXPECT_EQ(model.document->displayName(split.stages.at(1).cloned[0]), "a");
}

// Holds P29b: a write through a view that was made in an earlier stage would not reach its base.
TEST(Split, AWriteThroughAViewFromElsewhereIsRefused) {
  std::string text = written;
  const std::string write = "b = aten.mul_.Tensor(a, x)  # b: \"f32[4]\", shares a, version 1";
  text.replace(text.find(write), write.size(), "b = aten.neg_(v)  # b: \"f32[2]\", shares a, version 1");
  const auto model = modelOf(text);
  const auto error = errorOf([&] { splitAtMarkers(model); });
  EXPECT_NE(error.find("#b (torch.ops.aten.neg_.default) in stage 1"), std::string::npos) << error;
  EXPECT_NE(error.find("writes in place to memory of a, which stage 0 makes and #c in stage 2 reads afterwards"),
            std::string::npos)
      << error;
}

// Holds P29b: the caller's tensor would not be written to.
TEST(Split, AWriteToTheCallersMemoryThroughAViewFromElsewhereIsRefused) {
  const auto model = modelOf(R"(
def computation(x):
    # x: "f32[4]"
    v = aten.slice.Tensor(x, 0, 0, 2)  # v: "f32[2]", shares x
    pippy._pipe_split.default()
    b = aten.neg_(v)  # b: "f32[2]", shares x, version 1
    return b
)");
  const auto error = errorOf([&] { splitAtMarkers(model); });
  EXPECT_NE(error.find("#b (torch.ops.aten.neg_.default) in stage 1"), std::string::npos) << error;
  EXPECT_NE(error.find("it writes through v, which stage 0 makes, to an input or buffer of the model"),
            std::string::npos)
      << error;
}

TEST(Split, AWriteToOneOfTwoReceivedAliasesIsRefused) {
  std::string text = written;
  text.replace(text.find("    b = aten.mul_"), 0, "    w = aten.sin(v)  # w: \"f32[2]\"\n");
  EXPECT_NE(errorOf([&] { splitAtMarkers(modelOf(text)); }).find("that v and a share, which come from other stages"),
            std::string::npos);
}

// Holds P29: the model's caller is a reader too.
TEST(Split, AWrittenValueIsReturnedByTheStageThatWroteIt) {
  std::string text = written;
  text.replace(text.find("return c"), 8, "return c, a");
  const auto model = modelOf(text);
  const auto split = splitAtMarkers(model);
  ASSERT_EQ(split.stages.at(1).outputs.size(), 1u);
  EXPECT_EQ(split.stages.at(1).outputs[0].results, std::vector<std::size_t>{1});
}

}  // namespace
}  // namespace retrograd

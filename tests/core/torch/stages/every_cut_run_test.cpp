// A cut at any op: the stages give what the whole model gives, or the cut is refused.
#include "core/torch/checking/every_cut.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/core/cut/cut_files.h"
#include "tests/support/report_text.h"

namespace retrograd {
namespace {

using test::at;
using test::derived;
using test::openedText;

/// Views that hold only in the strides of the value that they are of: parts of one projection (gaps), expanded values
/// (stride 0), windows (overlaps).
constexpr const char* attention = R"(
def computation(x, w, b, o):
    # x: "f32[2, 3, 4]"
    # w: "f32[12, 4]", parameter w
    # b: "f32[4]", parameter b
    # o: "f32[4, 4]", parameter o
    h = aten.linear(x, w)
    q, k, v = aten.split.Tensor(h, 4, 2)
    q1 = aten.view(q, [2, 3, 2, 2])
    q2 = aten.transpose.int(q1, 1, 2)
    k1 = aten.view(k, [2, 3, 2, 2])
    k2 = aten.transpose.int(k1, 1, 2)
    v1 = aten.view(v, [2, 3, 2, 2])
    v2 = aten.transpose.int(v1, 1, 2)
    a = aten.scaled_dot_product_attention(q2, k2, v2)
    a1 = aten.transpose.int(a, 1, 2)
    a2 = aten.reshape(a1, [2, 3, 4])
    q3 = aten.transpose.int(q2, 1, 2)
    q4 = aten.view(q3, [2, 3, 4])
    s = aten.add.Tensor(a2, q4)
    e = aten.expand(b, [2, 3, 4])
    e1 = aten.transpose.int(e, 0, 2)
    e2 = aten.sin(s)
    e3 = aten.permute(e1, [2, 1, 0])
    e4 = aten.view(e3, [6, 4])
    u = aten.unfold(e2, 2, 2, 1)
    u1 = aten.transpose.int(u, 0, 1)
    u2 = aten.cos(u1)
    m = aten.mm(e4, o)
    y = aten.sum(u2)
    z = aten.sum(m)
    return y, z, e2
)";

// What crosses a border has the strides that it has in the whole model, so that views of it hold there too.
TEST(EveryCut, GivesWhatTheWholeModelGives) {
  std::size_t told = 0;
  const auto reports =
      checkEveryCut(test::writeTemporary("attention.txt", attention), {}, {}, [&](const Report&) { ++told; });
  EXPECT_EQ(reports.size(), 24u);
  EXPECT_EQ(told, reports.size());
  for (const auto& report : reports)
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << report.subject << ": " << decide(report).reason;
}

TEST(EveryCut, ValuesCrossInTheirStrides) {
  std::size_t gaps = 0;
  for (const std::string op : {"q1", "q3", "e2", "e3", "u1", "u2"}) {
    const auto pipeline = derived(openedText(attention, at({"#" + op})));
    const auto& stage = *pipeline.stages.at(1);
    const auto& split = pipeline.split.stages.at(1);
    for (std::size_t i = 0; i < split.inputs.size(); ++i) {
      if (split.inputs[i].source < 0) continue;
      const auto& name = stage.computation().inputs[split.held.size() + i].name;
      const auto& whole = pipeline.whole->document->meta(split.inputs[i].value);
      EXPECT_EQ(stage.request.inputs.at(name).meta.strides, whole.strides) << op << " " << name;
      gaps += whole.strides != contiguousStrides(whole.sizes);
    }
  }
  EXPECT_GT(gaps, 6u);
}

// A refusal is reported as one, with the op, and another failure never is.
TEST(EveryCut, SaysWhichAreRefused) {
  const auto reports = checkEveryCut(test::writeTemporary("written.txt", R"(
def computation(x, w):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    a = aten.mm(x, w)
    p = aten.select.int(a, 0, 1)
    r = aten.select.int(a, 0, 2)
    b = aten.mul_.Tensor(p, r)
    c = aten.sin(a)
    return c
)"),
                                     {}, {}, [](const Report&) {});
  ASSERT_EQ(reports.size(), 4u);
  for (const auto& report : reports) {
    EXPECT_TRUE(test::verdictOf(report) == Verdict::pass || test::verdictOf(report) == Verdict::notPossible)
        << report.subject << ": " << decide(report).reason;
    if (test::verdictOf(report) == Verdict::notPossible) {
      EXPECT_NE(decide(report).reason.find('#'), std::string::npos) << decide(report).reason;
    }
  }
  EXPECT_EQ(test::verdictOf(reports[3]), Verdict::pass) << decide(reports[3]).reason;
  EXPECT_EQ(test::verdictOf(reports[1]), Verdict::notPossible);
}

}  // namespace
}  // namespace retrograd

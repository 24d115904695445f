// Programs of the fuzzer that are cut into stages between what shares memory, or where a draw decides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/torch/grad/programs.h"

namespace retrograd {
namespace {

// The view inside kron is one that autograd does not know of: eager's backward reads what is written to it later.
TEST(Programs, ACutBeforeAWriteThatAnEarlierBackwardReadsIsRefused) {
  const std::string program = R"(def computation(x0, x1):
    # x0: "f64[3, 2]"
    # x1: "f64[2]", no grad
    v1 = torch.ops.aten.mul.Scalar(x1, 2.0)
    v22 = torch.ops.aten.kron.default(v1, x0)
    v25 = torch.ops.aten.mul_.Scalar(v1, 3.0)
    return (v22,)
)";
  fuzz::Mode mode;
  mode.cuts = {1};
  expectAsEager(program, mode);
  mode.cuts = {2};
  const auto verdict = verdictOf(program, mode);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::notCut) << verdict.message;
  EXPECT_NE(verdict.message.find("torch.ops.aten.kron.default"), std::string::npos) << verdict.message;
  EXPECT_NE(verdict.message.find("torch.ops.aten.mul_.Scalar"), std::string::npos) << verdict.message;
}

// A view without elements is of that memory all the same: the write in the later stage makes its gradient zeros.
TEST(Programs, ACutBetweenAViewWithoutElementsAndAWriteIsRefused) {
  fuzz::Mode mode;
  mode.cuts = {3};
  const auto verdict = verdictOf(R"(def computation(p1, p2):
    # p1: "f64[3, 1]", parameter
    # p2: "f64[3, 1]", parameter
    v1 = torch.ops.aten.mul.Tensor(p1, p1)
    [v30, v31] = torch.ops.aten.vsplit.array(v1, [3])
    v35 = torch.ops.aten.view.default(v30, [3, 1])
    v36 = torch.ops.aten.mul_.Tensor(v35, p2)
    return (v31,)
)",
                                 mode);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::notCut) << verdict.message;
}

// Where draws decide what a stage does, they are those of the whole run only if no stage before it draws.
TEST(Programs, AStageWhoseDrawsDecideBehindOtherDrawsIsNotACut) {
  const std::string program = R"(def computation(b3, x5):
    # b3: "f64[4]", buffer
    # x5: "f64[1, 3]"
    v24 = torch.ops.aten.rand_like.default(b3)
    v34 = torch.ops.aten.randn_like.default(b3)
    v35 = torch.ops.aten.sum.default(v34)
    v36 = torch.ops.aten.gt.Scalar(v35, -0.3125)
    def body_0(v37, v38, v39):
        v40 = torch.ops.aten.trunc.default(v37)
        return (v40,)
    def body_1(v42, v43, v44):
        return (v42,)
    (v46,) = torch.ops.higher_order.cond(v36, body_0, body_1, [b3, x5, b3])
    return (v46,)
)";
  fuzz::Mode mode;
  mode.cuts = {1};
  const auto verdict = verdictOf(program, mode);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::notCut) << verdict.message;
  EXPECT_NE(verdict.message.find("after another stage drew"), std::string::npos) << verdict.message;
  mode.cuts = {3};
  expectAsEager(program, mode);
}

// Elements of an expanded value share memory, which a write through one of them changes for all; a copy in another
// stage has a place for each.
TEST(Programs, AStageDoesNotWriteToMemoryThatAnExpandedValueShares) {
  const std::string program = R"(def computation(x0, x1):
    # x0: "f64[3]"
    # x1: "f64[12]", no grad
    v1 = torch.ops.aten.sin.default(x1)
    [v2, v3] = torch.ops.aten.meshgrid.default([v1, x0])
    [v4, v5] = torch.ops.aten.tensor_split.sections(v2, 2, 1)
    v6 = torch.ops.aten.zero_.default(v5)
    return (v4,)
)";
  expectAsEager(program);
  fuzz::Mode mode;
  mode.cuts = {2};
  const auto verdict = verdictOf(program, mode);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::notCut) << verdict.message;
  EXPECT_NE(verdict.message.find("several elements of which share a place"), std::string::npos) << verdict.message;
}

// Whether `reshape` is a view depends on the strides, so a stage keeps those of what it writes to, gaps included.
TEST(Programs, AStageKeepsTheStridesOfWhatItWritesTo) {
  fuzz::Mode mode;
  mode.cuts = {2};
  expectAsEager(R"(def computation(p1, b4):
    # p1: "f64[3, 3, 3] strides [3, 9, 1]", parameter
    # b4: "f64[1]", buffer
    v13 = torch.ops.aten.full_like.default(p1, -0.0625)
    v14 = torch.ops.aten.slice.Tensor(v13, 0, None, None, 2)
    v16 = torch.ops.aten.lerp_.Scalar(v14, v14, 0.25)
    v23 = torch.ops.aten.repeat.default(b4, [32])
    v27 = torch.ops.aten.reshape.default(v14, [-1])
    v30 = torch.ops.aten.narrow.default(v23, 0, 23, 1)
    v32 = torch.ops.aten.addcmul_.default(v27, v27, v30)
    return (v14,)
)",
                mode);
}

// Whether resolve_conj and resolve_neg copy depends on whether a tensor is conjugated or negated lazily, so a stage
// keeps that of what it writes to.
TEST(Programs, AStageKeepsTheLazyConjugateOfWhatItWritesTo) {
  fuzz::Mode mode;
  mode.cuts = {2};
  expectAsEager(R"(def computation(x2):
    # x2: "f64[3, 2, 2]", no grad
    v14 = torch.ops.aten.complex.default(x2, x2)
    v15 = torch.ops.aten.conj.default(v14)
    v17 = torch.ops.aten.resolve_conj.default(v15)
    v24 = torch.ops.aten.fill_.Scalar(v15, 0.375)
    return (v17,)
)",
                mode);
  mode.cuts = {4};
  expectAsEager(R"(def computation(x2, x3):
    # x2: "f64[3, 4]"
    # x3: "f64[3, 2]"
    v13 = torch.ops.aten.slice.Tensor(x2, 1, None, None, 2)
    v14 = torch.ops.aten.complex.default(v13, x3)
    v15 = torch.ops.aten.conj.default(v14)
    v16 = torch.ops.aten.imag.default(v15)
    v17 = torch.ops.aten.resolve_neg.default(v16)
    v18 = torch.ops.aten.mul_.Tensor(v16, x3)
    return (v17, v18)
)",
                mode);
}

// The document knows a tensor by the sizes and strides that it had, under each of its names: an op in place gives it
// another, and so does a region.
TEST(Programs, AStageThatReadsWhatAnotherReshapesInPlaceIsNotACut) {
  const auto expectNoCut = [](const std::string& text, std::size_t cut) {
    fuzz::Mode mode;
    mode.cuts = {cut};
    const auto verdict = verdictOf(text, mode);
    EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::notCut) << verdict.message;
    EXPECT_NE(verdict.message.find("changes in place"), std::string::npos) << verdict.message;
  };
  expectNoCut(R"(def computation(x1):
    # x1: "f64[2, 3]", no grad
    v12 = torch.ops.aten.swapaxes_.default(x1, 1, 0)
    v19 = torch.ops.aten.mul.Scalar(v12, 1.5)
    v26 = torch.ops.aten.addcmul_.default(v19, x1, v19)
    return (v26,)
)",
              2);
  expectNoCut(R"(def computation(b4):
    # b4: "f64[4, 4]", buffer
    v2 = torch.ops.aten.mul_.Scalar(b4, 2.0)
    v23 = torch.ops.aten.t_.default(v2)
    v53 = torch.ops.aten.randn_like.default(b4)
    return (v53,)
)",
              2);
  expectNoCut(R"(def computation(b4):
    # b4: "f64[4, 4]", buffer
    def body_0(v15):
        v23 = torch.ops.aten.t_.default(v15)
        return (v15, v23)
    (v24, v25) = torch.ops.higher_order.tag_activation_checkpoint(body_0, b4)
    v53 = torch.ops.aten.randn_like.default(b4)
    return (v53,)
)",
              1);
}

}  // namespace
}  // namespace retrograd

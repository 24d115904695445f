// Further programs that the program fuzzer found: sizes changed in place, None gradients, and cuts between what shares memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fuzz/programs/read_program.h"
#include "tests/fuzz/programs/trial.h"

namespace retrograd {
namespace {

fuzz::Verdict verdictOf(const std::string& text, const fuzz::Mode& mode = {}, std::uint64_t seed = 1) {
  return fuzz::tryProgram(fuzz::readProgram(text, seed, mode));
}

void expectAsEager(const std::string& text, const fuzz::Mode& mode = {}, std::uint64_t seed = 1) {
  const auto verdict = verdictOf(text, mode, seed);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::same) << verdict.where << ": " << fuzz::name(verdict.kind) << ": " << verdict.message;
}

fuzz::Mode ofOrder(int order) {
  fuzz::Mode mode;
  mode.order = order;
  return mode;
}

/// An input whose geometry changes under no_grad, with one op before and one after.
std::string reshaped(const std::string& sizes, const std::string& before, const std::string& change) {
  return fmt::format(R"(def computation(x0):
    # x0: "f64[{}]"
    {}
    def body_2(v43):
        v45 = torch.ops.aten.{}
        return (v45,)
    (v61,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_2, x0)
    v62 = torch.ops.aten.cumsum.default(x0, 0)
    v63 = torch.ops.aten.mul.Tensor(v62, x0)
    return (v1, v63)
)",
                     sizes, before, change);
}

// Autograd learns a leaf's sizes from the first op that it records.
TEST(Programs, TheGradientOfAnInputHasTheSizesThatTheFirstOpSaw) {
  const std::string recorded = "v1 = torch.ops.aten.mul.Scalar(x0, 2.0)";
  for (int order : {1, 2}) {
    expectAsEager(reshaped("3", "v1 = torch.ops.aten.detach.default(x0)", "unsqueeze_.default(v43, 0)"), ofOrder(order));
    expectAsEager(reshaped("3", recorded, "unsqueeze_.default(v43, 0)"), ofOrder(order));
    expectAsEager(reshaped("3, 3", recorded, "transpose_.default(v43, 0, 1)"), ofOrder(order));
  }
  expectAsEager(reshaped("3", "v1 = torch.ops.aten.detach.default(x0)", "unsqueeze_.default(v43, 1)"));
  expectAsEager(reshaped("3, 2", "v1 = torch.ops.aten.detach.default(x0)", "transpose_.default(v43, 0, 1)"));
}

// LibTorch's sign of slogdet sends no gradient back, and as_strided_scatter, whose derivative is our own, makes no zeros of it.
TEST(Programs, WhereNoGradientArrivesAsStridedScatterGivesNone) {
  expectAsEager(R"(def computation(x0, x1):
    # x0: "f64[3, 3]"
    # x1: "f64[2]"
    v1 = torch.ops.aten.as_strided_scatter.default(x0, x1, [2], [1], 0)
    (v2, v3) = torch.ops.aten.slogdet.default(v1)
    return (v2,)
)");
}

// Values inside of an op's rule get no gradient of their own: the view as real numbers within real is not the one that the write goes through.
TEST(Programs, AWriteThroughTheRealPartKeepsTheGradientOfTheWhole) {
  expectAsEager(R"(def computation(p1):
    # p1: "c128[3, 2]", parameter
    v39 = torch.ops.aten.clone.default(p1)
    v40 = torch.ops.aten.real.default(v39)
    v42 = torch.ops.aten.add_.Tensor(v40, v40)
    return (v39,)
)");
}

// The view inside of kron is one that autograd does not know of: eager's backward reads what is written to it later.
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

// The memory of a lazily conjugated result is not what its elements are: the copy that an aliased write runs on is one of the memory.
TEST(Programs, AnAliasedWriteIntoConjugatedMemoryReadsTheMemory) {
  expectAsEager(R"(def computation(x1):
    # x1: "f64[4, 4]", no grad
    v21 = torch.ops.aten.fft_ifft.default(x1)
    v27 = torch.ops.aten.mH.default(v21)
    v29 = torch.ops.aten.add_.Tensor(v27, v27)
    return (v29,)
)");
}

// A copy is resolved: what takes the place of lazily conjugated memory has to be conjugated again, or the views made of it look at something else.
TEST(Programs, AWriteIntoConjugatedMemoryLeavesItConjugated) {
  const std::string program = R"(def computation(x1):
    # x1: "f64[6]", parameter
    v1 = torch.ops.aten.mul.Tensor(x1, 2.0)
    v2 = torch.ops.aten.fft_ifft.default(v1)
    v3 = torch.ops.aten.imag.default(v2)
    v4 = torch.ops.aten.absolute_.default(v3)
    v5 = torch.ops.aten.real.default(v2)
    v6 = torch.ops.aten.sin_.default(v5)
    v7 = torch.ops.aten.abs.default(v2)
    return (v7, v3)
)";
  expectAsEager(program);
  fuzz::Mode mode;
  mode.order = 2;
  EXPECT_EQ(verdictOf(program, mode).kind, fuzz::Verdict::Kind::same) << verdictOf(program, mode).message;
}

// `quantile` writes in place inside: in the second derivation that write is the last one that the memory of its result has, and it came before the one
// in the program, which the joint trace makes in a copy.
TEST(Programs, ASecondDerivativeReadsWhatWasWrittenLast) {
  const std::string program = R"(def computation(b4, x6):
    # b4: "f64[3]", buffer
    # x6: "f64[3, 4]"
    v12 = torch.ops.aten.nanquantile.scalar(b4, 0.4, -1, True)
    v16 = torch.ops.aten.kron.default(x6, v12)
    v24 = torch.ops.aten.arctan2_.default(v12, v12)
    return (v16,)
)";
  expectAsEager(program);
  fuzz::Mode mode;
  mode.order = 2;
  expectAsEager(program, mode);
}

// What the first derivation made for a late read may be nothing that its joint needs: then it is not there to be read.
TEST(Programs, ASecondDerivativeReadsNothingThatIsNotThere) {
  const std::string program = R"(def computation(x1, x2):
    # x1: "f64[4, 2]"
    # x2: "f64[]", no grad
    v12 = torch.ops.aten.mul.Scalar(x1, 1.5)
    v13 = torch.ops.aten.expand.default(v12, [1, 4, 2])
    v14 = torch.ops.aten.add_.Tensor(v13, x2)
    [v16, v17] = torch.ops.aten.unsafe_chunk.default(v13, 2, 2)
    v44 = torch.ops.aten.reshape.default(v17, [-1])
    v55 = torch.ops.aten.full.default([2], 2, dtype=torch.int64)
    v56 = torch.ops.aten.segment_reduce.default(v44, "sum", lengths=v55)
    return (v56,)
)";
  fuzz::Mode mode;
  mode.order = 2;
  expectAsEager(program, mode);
}

// Written before and after it is read: one value stands for both in a second derivative.
TEST(Programs, ASecondDerivativeOfWhatIsReadLateIsRefused) {
  const std::string program = R"(def computation(p1, p5):
    # p1: "f32[2, 3, 2]", parameter
    # p5: "f32[1, 2]", parameter
    v16 = torch.ops.aten.clone.default(p1)
    v23 = torch.ops.aten.randperm.default(3)
    v25 = torch.ops.aten.index_add_.default(v16, 1, v23, p1)
    v35 = torch.ops.aten.kron.default(p5, v16)
    v36 = torch.ops.aten.relu_.default(v16)
    return (v35,)
)";
  expectAsEager(program);
  fuzz::Mode mode;
  mode.order = 2;
  const auto verdict = verdictOf(program, mode);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::refused) << verdict.message;
  EXPECT_NE(verdict.message.find("writes to later"), std::string::npos) << verdict.message;
}

// The gradient of unfold's gradient has several elements in one place; a scatter into it would reach them all.
TEST(Programs, ASecondDerivativeScattersIntoNoElementsInOnePlace) {
  fuzz::Mode mode;
  mode.order = 2;
  expectAsEager(R"(def computation(p1, p2):
    # p1: "f64[2, 4]", parameter
    # p2: "f64[2, 2]", parameter
    v14 = torch.ops.aten.unfold_copy.default(p1, 1, 3, 1)
    v16 = torch.ops.aten.diagonal.default(v14, -1, 2, 0)
    v18 = torch.ops.aten.mul_.Tensor(v16, p2)
    return (v14,)
)",
                mode);
}

// Autograd replaces the written part of a complex gradient; a sum would carry NaN from the real part to the other.
TEST(Programs, NaNInOnePartOfAWrittenComplexGradientStaysThere) {
  for (const auto* part : {"real", "imag"})
    expectAsEager(fmt::format(R"(def computation(x3, x4):
    # x3: "f64[3]"
    # x4: "f64[3]"
    v12 = torch.ops.aten.complex.default(x3, x4)
    v13 = torch.ops.aten.{}.default(v12)
    v14 = torch.ops.aten.slice.Tensor(v13, 0, 0, 2)
    v23 = torch.ops.aten.mul_.Scalar(v14, float("nan"))
    return (v12,)
)",
                              part));
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
TEST(Programs, AStageWhoseDrawsDecideBehindOtherDrawsIsNoCut) {
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

// A checkpoint returns the tensors themselves, as Python does.
TEST(Programs, ATensorThatACheckpointReturnsTwiceIsOneTensor) {
  expectAsEager(R"(def computation(x0, x2):
    # x0: "f64[3, 4]"
    # x2: "f64[4, 3]"
    def body_0(v15, v16):
        return (v16, v16)
    (v20, v21) = torch.ops.higher_order.tag_activation_checkpoint(body_0, x2, x0)
    v24 = torch.ops.aten.unsqueeze_.default(x0, 0)
    return (v20,)
)");
  expectAsEager(R"(def computation(p1, b2):
    # p1: "f64[3]", parameter
    # b2: "f64[4]", buffer
    [v12, v13, v14, v15] = torch.ops.aten.split.Tensor(b2, 1, 0)
    def body_1(v29, v30, v31):
        v32 = torch.ops.aten.mul.Tensor(v31, v29)
        return (v32, v30, v32)
    (v35, v36, v37) = torch.ops.higher_order.tag_activation_checkpoint(body_1, v12, p1, v13)
    v46 = torch.ops.aten.squeeze_.default(v35)
    return (v37,)
)");
}

TEST(Programs, APseudoinverseInAnAutocastRegionIsRefused) {
  const auto programOf = [](std::string_view dtype) {
    return fmt::format(R"(def computation(x6):
    # x6: "{}[2, 2]", no grad
    def body_1(v34):
        v46 = torch.ops.aten.linalg_pinv.default(v34, 1e-06)
        return (v46,)
    (v56,) = torch.ops.higher_order.wrap_with_autocast("cpu", torch.bfloat16, True, True, body_1, x6)
    return (v56,)
)",
                       dtype);
  };
  EXPECT_EQ(verdictOf(programOf("f32")).kind, fuzz::Verdict::Kind::refused);
  expectAsEager(programOf("f64"));
}

// Of a view autograd makes the history again after any change, from the sizes and strides that it has then.
TEST(Programs, AViewThatChangesItsGeometryUnderNoGradKeepsItsPlaceInMemory) {
  const auto programOf = [](std::string_view first, std::string_view write, std::string_view results) {
    return fmt::format(R"(def computation(x0, w):
    # x0: "f64[4]"
    # w: "f64[2, 2]"
    v1 = torch.ops.aten.{}
    v2 = torch.ops.aten.view.default(v1, [2, 2])
    def body_0(v19):
        v21 = torch.ops.aten.swapaxes_.default(v19, 0, 1)
        return (v21,)
    (v23,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v2)
{}    v3 = torch.ops.aten.mul.Tensor(v23, w)
    return ({})
)",
                       first, write, results);
  };
  const std::string_view write = "    v4 = torch.ops.aten.select.int(v23, 0, 1)\n    v5 = torch.ops.aten.mul_.Scalar(v4, 3)\n";
  expectAsEager(programOf("repeat.default(x0, [1])", "", "v3,"));
  expectAsEager(programOf("view.default(x0, [4])", "", "v3,"));  // of a leaf
  expectAsEager(programOf("repeat.default(x0, [1])", write, "v3, v1"));
  expectAsEager(R"(def computation(x0):
    # x0: "f64[4, 2]"
    v15 = torch.ops.aten.reshape.default(x0, [-1])
    v16 = torch.ops.aten.repeat.default(v15, [2])
    v17 = torch.ops.aten.view.default(v16, [2, 2, 4])
    def body_0(v19, v20):
        v21 = torch.ops.aten.swapaxes_.default(v20, 0, 1)
        return (v21,)
    (v23,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v17, v17)
    v26 = torch.ops.aten.unfold.default(v23, 1, 1, 1)
    v27 = torch.ops.aten.narrow.default(v26, 2, 2, 2)
    v28 = torch.ops.aten.view.default(v15, [2, 2, 2, 1])
    v29 = torch.ops.aten.add_.Tensor(v27, v28)
    return (v16,)
)");
  // A change that changes nothing, and a write to another view.
  expectAsEager(R"(def computation(x3, p5):
    # x3: "f64[2, 4]"
    # p5: "f64[1, 2, 3, 3]", parameter
    v15 = torch.ops.aten.new_zeros.default(x3, [])
    v16 = torch.ops.aten.replication_pad2d.default(p5, [1, 1, 0, 2])
    v20 = torch.ops.aten.reshape.default(v16, [-1])
    v21 = torch.ops.aten.narrow.default(v20, 0, 23, 18)
    v22 = torch.ops.aten.view.default(v21, [1, 2, 3, 3])
    def body_0(v26):
        v27 = torch.ops.aten.squeeze_.default(v26)
        return (v26,)
    (v33,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v21)
    v34 = torch.ops.aten.copy_.default(v22, v15)
    return (v21,)
)");
}

// What is no view keeps its history, element by element, also where a view of it is written to later.
TEST(Programs, ABaseThatChangesItsGeometryUnderNoGradKeepsItsHistory) {
  expectAsEager(R"(def computation(x0, w):
    # x0: "f64[4]"
    # w: "f64[2, 2]"
    v1 = torch.ops.aten.repeat.default(x0, [1, 1])
    v2 = torch.ops.aten.reshape.default(v1, [2, 2])
    v6 = torch.ops.aten.mul.Tensor(v2, v2)
    def body_0(v19):
        v21 = torch.ops.aten.swapaxes_.default(v19, 0, 1)
        return (v21,)
    (v23,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, v6)
    v4 = torch.ops.aten.select.int(v23, 0, 1)
    v5 = torch.ops.aten.mul_.Scalar(v4, 3)
    v3 = torch.ops.aten.mul.Tensor(v23, w)
    return (v3, v6)
)");
}

// kron looks at its operands through views that autograd does not know of; the lazy conjugate of a buffer lies in the buffer's memory.
TEST(Programs, AConjugateThatIsReadLateIsOfWhatWasWritten) {
  expectAsEager(R"(def computation(b2, p3):
    # b2: "c128[2]", buffer
    # p3: "c128[1, 2]", parameter
    v13 = torch.ops.aten.conj.default(b2)
    v14 = torch.ops.aten.kron.default(p3, v13)
    v34 = torch.ops.aten.mul_.Scalar(b2, -0.25)
    return (v14,)
)");
}

// At other sizes a slice of the first derivative may hold fewer elements, and LibTorch's kernel of batch norm does not look how many weights there are.
TEST(Programs, ADerivationAtOtherSizesRefusesBatchNormOfTooFewWeights) {
  fuzz::Mode mode;
  mode.order = 2;
  mode.otherSize = 8;
  expectAsEager(R"(def computation(x0, b3, x5, b6, b7):
    # s0: 5, symbolic size in [2, 64]
    # x0: "f64[s0=5]"
    # b3: "f64[]", buffer
    # x5: "f64[2, 3, 2, 2]"
    # b6: "f64[3]", buffer
    # b7: "f64[3]", buffer
    v13 = torch.ops.aten.narrow.default(x0, 0, 2, 3)
    v35 = torch.ops.aten.repeat.default(b3, [3])
    v37 = torch.ops.aten.instance_norm.default(x5, v13, v35, b6, b7, True, 0.25, 0.01, False)
    return (v37,)
)",
                mode);
}

// Elements of an expanded value share memory, which a write through one of them changes for all; a copy in another stage has a place for each.
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

// Eager PyTorch lets nothing write to a leaf while it records, so the input is differentiated as one that requires no gradient.
TEST(Programs, ALeafThatChangedItsGeometryUnderNoGradIsALeafStill) {
  expectAsEager(R"(def computation(x2):
    # x2: "f64[4, 4]"
    def body_0(v12):
        v14 = torch.ops.aten.squeeze_.default(v12)
        return (v14,)
    (v15,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, x2)
    v27 = torch.ops.aten.hardsigmoid_.default(x2)
    return (x2,)
)");
}

// What `reshape` gives is a view at one size and a copy at the other, so the write reaches the input at the first size only.
TEST(Programs, AWriteThatReachesAnInputAtOneSizeOnly) {
  fuzz::Mode mode;
  mode.otherSize = 7;
  expectAsEager(R"(def computation(x3):
    # s0: 4, symbolic size in [2, 64]
    # x3: "f64[2, s0=4]"
    [v14, v15] = torch.ops.aten.hsplit.array(x3, [4])
    v22 = torch.ops.aten.reshape.default(v14, [-1])
    v23 = torch.ops.aten.addcmul_.default(v22, v22, v22)
    return (x3,)
)",
                mode);
}

// A gradient that is zero but for rounding: moved cotangents show how much that is.
TEST(Programs, AGradientThatCancelsIsJudgedByItsOwnNoise) {
  fuzz::Mode mode;
  mode.cuts = {3};
  expectAsEager(R"(def computation(x0, x2, b8, b9):
    # x0: "f64[4, 3]"
    # x2: "f64[]"
    # b8: "f64[2]", buffer
    # b9: "f64[2]", buffer
    v20 = torch.ops.aten.repeat.default(x2, [24])
    v21 = torch.ops.aten.reshape.default(v20, [2, 2, 3, 2])
    v22 = torch.ops.aten.batch_norm.default(v21, None, None, b8, b9, True, 0.25, 0.01, False)
    [v27, v28, v29] = torch.ops.aten.unbind_copy.int(x0, 1)
    v30 = torch.ops.aten.swapdims.default(v22, 0, -1)
    return (v27, v29, v30)
)",
                mode, 215);
}

/// avg_pool1d gives a view of what avg_pool2d made. Autograd makes a view's history again after a change of its geometry that it did not record, which is not
/// so of a tensor that is no view: refused, or the gradient would be that of the other.
TEST(Programs, GeometryOfAViewMadeInARuleChangedUnderNoGrad) {
  const auto verdict = verdictOf(R"(def computation(x):
    # x: "f64[2, 1, 5]"
    y = torch.ops.aten.avg_pool1d.default(x, [2])
    def body_0(z):
        w = torch.ops.aten.transpose_.default(z, 0, 2)
        return (w,)
    (v,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, y)
    return (y,)
)");
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::refused) << verdict.message;
}

/// A view in another dtype is made again by its ops, as it was before the change.
TEST(Programs, GeometryOfAViewInAnotherDtypeChangedUnderNoGrad) {
  const auto verdict = verdictOf(R"(def computation(x):
    # x: "c128[4, 4]"
    y = torch.ops.aten.mul.Scalar(x, 2.0)
    z = torch.ops.aten.view_as_real.default(y)
    def body_0(v):
        w = torch.ops.aten.transpose_.default(v, 1, 0)
        return (w,)
    (w,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, z)
    return (w,)
)");
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::refused) << verdict.message;
}

/// A change of geometry that changes nothing leaves the tensor with its views, which follow a later write; one that does is refused.
TEST(Programs, ViewsTakenBeforeAChangeOfGeometryFollowALaterWrite) {
  const auto program = [](const char* sizes, const char* change) {
    return fmt::format(R"(def computation(x):
    # x: "f64[{}]"
    y = torch.ops.aten.mul.Scalar(x, 2.0)
    z = torch.ops.aten.view.default(y, [-1])
    def body_0(v):
        w = torch.ops.aten.{}
        return (w,)
    (w,) = torch.ops.higher_order.wrap_with_set_grad_enabled(False, body_0, y)
    n = torch.ops.aten.neg_.default(w)
    return (z,)
)",
                       sizes, change);
  };
  expectAsEager(program("3, 3", "squeeze_.default(v)"));
  const auto verdict = verdictOf(program("3, 3", "transpose_.default(v, 0, 1)"));
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::refused) << verdict.message;
}

// Batch norm writes both running statistics without a word. Where they share elements, each sees the other's write, which no rule says.
TEST(Programs, RunningStatisticsThatOverlapAreRefused) {
  const auto program = [](const char* variance) {
    return fmt::format(R"(def computation(x, b):
    # x: "f64[3, 2]"
    # b: "f64[2, 2]", buffer
    n = torch.ops.aten.add.Scalar(b, 1.0)
    m = torch.ops.aten.select.int(n, 0, 0)
    v = torch.ops.aten.{}
    y = torch.ops.aten.batch_norm.default(x, None, None, m, v, True, 0.25, 0.01, False)
    z = torch.ops.aten.batch_norm.default(y, None, None, m, v, False, 0.25, 0.01, False)
    return (y, z, n)
)",
                       variance);
  };
  expectAsEager(program("select.int(n, 0, 1)"));
  for (const auto* variance : {"view.default(m, [2])", "as_strided.default(n, [2], [1], 1)"}) {
    const auto verdict = verdictOf(program(variance));
    EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::refused) << verdict.message;
  }
}

// The offset of as_strided_scatter counts in the memory of its operand; the gradient that comes may lie behind an offset of its own.
TEST(Programs, AStridedScatterTakesAGradientBehindAnOffset) {
  for (const auto* from : {"None", "1"})
    expectAsEager(fmt::format(R"(def computation(p1, s):
    # p1: "f64[2]", parameter
    # s: "f64[1]", parameter
    v16 = torch.ops.aten.ones.default([3], dtype=torch.float64)
    v40 = torch.ops.aten.as_strided_scatter.default(p1, s, [1], [1], {})
    v41 = torch.ops.aten.as_strided.default(v16, [2], [1], 1)
    v42 = torch.ops.aten.add_.Tensor(v41, v40)
    return (v42,)
)",
                              from));
}

// LibTorch divides a product by each element where none is zero, and multiplies the others where one is: they differ in what NaN, infinity and overflow leave.
TEST(Programs, TheGradientOfAProductIsChosenByItsValues) {
  const auto product = [](const std::string& dtype, const std::string& values, const std::string& op) {
    return fmt::format(R"(def computation(x0):
    # x0: "{0}[4]", parameter
    v1 = torch.ops.aten.full_like.default(x0, 1.0)
    v2 = torch.ops.aten.mul.Tensor(x0, x0)
    v3 = torch.ops.aten.add.Tensor(v2, v1)
    {1}
    v9 = torch.ops.aten.reshape.default(v8, [2, 2])
    v10 = torch.ops.aten.prod.{2}
    return (v10,)
)",
                       dtype, values, op);
  };
  // The first `count` elements, changed by an op; the others as they are.
  const auto with = [](const std::string& change, int count) {
    return fmt::format(
        "s4 = torch.ops.aten.slice.Tensor(v3, 0, 0, {1})\n    s5 = torch.ops.aten.{0}\n    "
        "s6 = torch.ops.aten.slice.Tensor(v3, 0, {1}, 4)\n    v8 = torch.ops.aten.cat.default([s5, s6], 0)",
        change, count);
  };
  const std::string plain = "v8 = torch.ops.aten.clone.default(v3)", zero = "mul.Scalar(s4, 0.0)", large = "mul.Scalar(s4, 1e200)";
  const std::string notANumber = "pow.Scalar(-2.0, s4)";
  for (int order : {1, 2})
    for (const auto* op : {"default(v9)", "dim_int(v9, 0)", "dim_int(v9, -1, True)"}) {
      for (const auto* dtype : {"f64", "f32", "c128"})
        for (const auto& values : {plain, with(zero, 1), with(zero, 3)}) expectAsEager(product(dtype, values, op), ofOrder(order));
      for (const auto& values : {with(notANumber, 1), with(large, 2), with(large, 4)}) expectAsEager(product("f64", values, op), ofOrder(order));
    }
}

// The derivative of sgn is a ZeroTensor: what is multiplied with it or divides it stays zero, NaN of the other factor or not.
TEST(Programs, AZeroGradientOutlivesNaN) {
  for (const auto* last : {"sgn_", "sgn"})
    expectAsEager(fmt::format(R"(def computation(p1):
    # p1: "f64[3]", parameter
    v15 = torch.ops.aten.sub.Scalar(p1, 100.0)
    v16 = torch.ops.aten.sqrt.default(v15)
    v17 = torch.ops.aten.nan_to_num.default(v16, 0.5, 1.5, -1.5)
    v18 = torch.ops.aten.reshape.default(v17, [3, 1])
    v23 = torch.ops.aten.{}.default(v18)
    return (v23,)
)",
                              last));
  // Of floor it is a tensor of zeros, and NaN stays NaN.
  expectAsEager(R"(def computation(p1):
    # p1: "f64[3]", parameter
    v15 = torch.ops.aten.sub.Scalar(p1, 100.0)
    v16 = torch.ops.aten.sqrt.default(v15)
    v17 = torch.ops.aten.nan_to_num.default(v16, 0.5, 1.5, -1.5)
    v23 = torch.ops.aten.floor.default(v17)
    return (v23,)
)");
}

}  // namespace
}  // namespace retrograd

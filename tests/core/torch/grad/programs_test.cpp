// Programs that the program fuzzer found (scripts/fuzz programs), each the smallest that showed what it showed:
// outputs, gradients, written memory and the generator's state are eager LibTorch's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/torch/grad/programs.h"

namespace retrograd {
namespace {

TEST(Programs, AWriteThroughAChainOfViewsIsSeenByItsBase) {
  expectAsEager(R"(def computation(x0, p1):
    # x0: "f64[2, 3]"
    # p1: "f64[3]", parameter
    v1 = torch.ops.aten.clone.default(x0)
    v2 = torch.ops.aten.transpose.int(v1, 0, 1)
    v3 = torch.ops.aten.select.int(v2, 1, 0)
    v4 = torch.ops.aten.mul_.Tensor(v3, p1)
    v5 = torch.ops.aten.sin.default(v1)
    return (v5,)
)",
                {}, 3);
}

TEST(Programs, ANanGradientOfAMedianStaysWhereTheMedianIs) {
  fuzz::Mode mode;
  mode.order = 2;
  expectAsEager(R"(def computation(x2):
    # x2: "f64[3, 2, 3]"
    v28 = torch.ops.aten.nanmedian.default(x2)
    v29 = torch.ops.aten.dist.default(v28, v28, 2)
    return (v29,)
)",
                mode, 486);
}

TEST(Programs, AnInfiniteGradientOfAMaximumStaysWhereTheMaximumIs) {
  for (const char* op : {"max", "min", "median"}) {
    expectAsEager(std::string(R"(def computation(x0):
    # x0: "f64[3, 2]"
    v1 = torch.ops.aten.)") +
                      op + R"(.default(x0)
    v2 = torch.ops.aten.sub.Tensor(v1, v1)
    v3 = torch.ops.aten.sqrt.default(v2)
    return (v3,)
)",
                  {}, 7);
  }
}

TEST(Programs, ASecondGradientThatAWriteCutsOffIsNone) {
  fuzz::Mode mode;
  mode.order = 2;
  expectAsEager(R"(def computation(x1, x2):
    # x1: "f64[]", no grad
    # x2: "f64[3]"
    v13 = torch.ops.aten.repeat.default(x2, [4])
    v14 = torch.ops.aten.reshape.default(v13, [3, 4])
    v26 = torch.ops.aten.copy_.default(v14, x1)
    v29 = torch.ops.aten.std.default(v14)
    return (v29,)
)",
                mode, 531);
}

TEST(Programs, WhatAStageReceivesWithGapsKeepsThemWhereItIsWritten) {
  fuzz::Mode mode;
  mode.cuts = {3};
  expectAsEager(R"(def computation(x0):
    # x0: "c128[4]"
    v12 = torch.ops.aten.eye.default(4, dtype=torch.complex128)
    v14 = torch.ops.aten.t_.default(v12)
    [v15, v16] = torch.ops.aten.chunk.default(v14, 3, 0)
    v19 = torch.ops.aten.reshape.default(v15, [-1])
    v30 = torch.ops.aten.add_.Scalar(v15, 0.4375)
    return (v19,)
)",
                mode, 861);
}

TEST(Programs, TheGradientReadsWhatAWriteLeftInComplexMemory) {
  expectAsEager(R"(def computation(x0, x1):
    # x0: "f64[3, 2, 3]"
    # x1: "f64[2]", no grad
    v12 = torch.ops.aten.complex.default(x1, x1)
    v13 = torch.ops.aten.view_as_real.default(v12)
    v22 = torch.ops.aten.kron.default(v13, x0)
    v24 = torch.ops.aten.le.Scalar(v13, 0.1875)
    v25 = torch.ops.aten.masked_fill_.Scalar(v13, v24, 0.0)
    return (v22,)
)",
                {}, 864);
}

TEST(Programs, ABodyIsRunAsPythonRunsIt) {
  expectAsEager(R"(def computation(x0, x1):
    # x0: "f64[3, 2]"
    # x1: "f64[2]"
    def body_0(v1, v2):
        v3 = torch.ops.aten.mul.Tensor(v1, v2)
        v4 = torch.ops.aten.sin.default(v3)
        return (v4, v3)
    (v5, v6) = torch.ops.higher_order.scan(body_0, [x1], [x0], [])
    return (v5, v6)
)",
                {}, 4);
}

// --- operands in the memory that is written ---

TEST(Programs, AConjugateOfWhatIsWrittenIsCopiedFirst) {
  expectAsEager(R"(def computation(x0, b2):
    # x0: "f64[4, 4]"
    # b2: "f64[]", buffer
    v15 = torch.ops.aten.complex.default(x0, x0)
    v16 = torch.ops.aten._conj.default(v15)
    v25 = torch.ops.aten.abs.default(v15)
    v26 = torch.ops.aten.gt.Scalar(v25, 0.75)
    v27 = torch.ops.aten.masked_scatter_.default(v15, v26, v16)
    return (v15, b2)
)",
                {}, 470);
  expectAsEager(R"(def computation(x3):
    # x3: "f64[4, 2]"
    v14 = torch.ops.aten.fft_ifft.default(x3)
    v26 = torch.ops.aten.add_.Tensor(v14, v14)
    v31 = torch.ops.aten.copy_.default(v14, v14)
    return (v14,)
)",
                {}, 19);
}

TEST(Programs, AComplexViewOfAnOddNumberOfRealNumbersIsWritten) {
  expectAsEager(R"(def computation(x1):
    # x1: "f64[3]", no grad
    v50 = torch.ops.aten.as_strided.default(x1, [2], [1], 0)
    v51 = torch.ops.aten.view_as_complex.default(v50)
    v52 = torch.ops.aten.addcmul_.default(v51, v51, v51)
    return (x1,)
)",
                {}, 885);
}

TEST(Programs, RealOfAConjugateIsWritten) {
  expectAsEager(R"(def computation(p1):
    # p1: "f64[27]", parameter
    v21 = torch.ops.aten.fft_ifft.default(p1)
    v34 = torch.ops.aten.unfold.default(v21, 0, 13, 13)
    v35 = torch.ops.aten.real.default(v34)
    v36 = torch.ops.aten.relu_.default(v35)
    return (v21,)
)",
                {}, 826);
}

// --- views ---

TEST(Programs, ASliceOfAnExpandedTensorIsWritten) {
  expectAsEager(R"(def computation(b4):
    # b4: "f64[]", buffer
    v22 = torch.ops.aten.broadcast_to.default(b4, [3])
    [v23, v24] = torch.ops.aten.tensor_split.indices(v22, [1], 0)
    v26 = torch.ops.aten.sigmoid_.default(v23)
    return (b4,)
)",
                {}, 116);
}

TEST(Programs, AsStridedReachesBeyondTheViewItIsTakenOf) {
  expectAsEager(R"(def computation(x, y):
    # x: "f64[3]"
    # y: "f64[2]"
    v15 = torch.ops.aten.repeat.default(x, [3])
    v26 = torch.ops.aten.narrow.default(v15, 0, 5, 3)
    v28 = torch.ops.aten.as_strided.default(v26, [2], [1], 1)
    v29 = torch.ops.aten.mul_.Tensor(v28, y)
    v30 = torch.ops.aten.sin.default(v28)
    v31 = torch.ops.aten.cos.default(v26)
    return (v15, v30, v31)
)",
                {}, 1);
}

/// Real numbers seen as complex ones have no geometry in common with them: refused, or the write would be lost.
TEST(Programs, AsStridedBeyondAViewInAnotherDTypeIsRefused) {
  const auto program = fuzz::readProgram(R"(def computation(x):
    # x: "f64[3]"
    v15 = torch.ops.aten.repeat.default(x, [4])
    v26 = torch.ops.aten.narrow.default(v15, 0, 2, 4)
    v27 = torch.ops.aten.view.default(v26, [2, 2])
    v30 = torch.ops.aten.view_as_complex.default(v27)
    v28 = torch.ops.aten.as_strided.default(v30, [2], [1], 3)
    v29 = torch.ops.aten.mul_.Scalar(v28, -1.875)
    return (v15, v30)
)",
                                         1, {});
  const auto verdict = fuzz::tryProgram(program);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::refused) << verdict.message;
  EXPECT_NE(verdict.message.find("reaches beyond"), std::string::npos) << verdict.message;
}

// --- under no_grad ---

TEST(Programs, WhatIsDrawnIntoMemoryWithGapsIsDrawnAsEagerDraws) {
  expectAsEager(R"(def computation(p1, b2):
    # p1: "f32[1, 3]", parameter
    # b2: "f32[4, 4] strides [8, 2] offset 3", buffer
    v21 = torch.ops.aten.normal_.default(b2)
    return (p1,)
)",
                {}, 810);
}

// The gradient of sgn is zero, which LibTorch's formula says with a ZeroTensor: one without memory, on which mul by a
// number gives another dtype.
TEST(Programs, ZerosOfAFormulaHaveMemory) {
  expectAsEager(R"(def computation(p1):
    # p1: "f32[]", parameter
    v28 = torch.ops.aten.rad2deg.default(p1)
    v29 = torch.ops.aten.sgn.default(v28)
    return (v29,)
)",
                {}, 685);
}

// The kernel writes x while it reads a part of it, and the formula reads what it left there.
TEST(Programs, TheGradientReadsWhatAnAliasedWriteLeft) {
  expectAsEager(R"(def computation(x2):
    # x2: "f64[3, 3, 3]"
    v12 = torch.ops.aten.mul.Scalar(x2, 3)
    v13 = torch.ops.aten.select.int(v12, 1, 1)
    v20 = torch.ops.aten.copysign_.Tensor(v12, v13)
    return (v20,)
)",
                {}, 661);
}

// --- autocast ---

// affine_grid_generator is one op, and autocast casts the product inside.
TEST(Programs, AutocastReachesIntoKernelsMadeOfOtherOps) {
  expectAsEager(R"(def computation(p2, p3):
    # p2: "f32[2, 4]", parameter
    # p3: "f32[3, 3, 2]", parameter
    def body_1(v28, v29, v30):
        v31 = torch.ops.aten.reshape.default(v29, [-1])
        v32 = torch.ops.aten.narrow.default(v31, 0, 5, 6)
        v33 = torch.ops.aten.view.default(v32, [1, 2, 3])
        v34 = torch.ops.aten.affine_grid_generator.default(v33, [1, 1, 2, 2], False)
        return (v34, v30, v29)
    (v40, v41, v42) = torch.ops.higher_order.wrap_with_autocast("cpu", torch.bfloat16, True, True, body_1, p2, p3, p3)
    return (v40,)
)",
                {}, 841);
}

// What matmul gives here is a view of a product that it folded: the rule's own tensor, in which no gradient comes in.
TEST(Programs, AWriteToAViewThatACompositeOpGives) {
  for (const char* sizes : {"2, 2, 1", "2, 2, 3"})
    for (const char* ops :
         {"select.int(v38, 1, 2)", "transpose.int(v38, 0, 1)", "as_strided.default(v38, [2], [1], 1)"})
      expectAsEager(fmt::format(R"(def computation(p1, x5):
    # p1: "f64[3, 2]", parameter
    # x5: "f64[{}]"
    v37 = torch.ops.aten.mul.Scalar(p1, 2.0)
    v38 = torch.ops.aten.matmul.default(v37, x5)
    v39 = torch.ops.aten.{}
    v41 = torch.ops.aten.mul_.Scalar(v39, 3.0)
    v42 = torch.ops.aten.sin.default(v38)
    return (v38, v39, v42)
)",
                                sizes, ops),
                    {}, 323);
}

// --- sizes ---

// Symbolic sizes are tried at other points, at which the buffers no longer fit: LibTorch's kernel would read beyond
// them.
TEST(Programs, BatchNormDoesNotReadBeyondItsStatistics) {
  expectAsEager(R"(def computation(x1, x2, b3, b4):
    # s0: 3, symbolic size in [2, 64]
    # x1: "f32[s0=3, s0=3, s0=3]"
    # x2: "f32[s0=3]"
    # b3: "f32[3]", buffer
    # b4: "f32[3]", buffer
    (v24, v25, v26, v27, v28) = torch.ops.aten._native_batch_norm_legit_functional.default(x1, x2, x2, b3, b4, True, 0.25, 0.01)
    return (x1,)
)",
                {}, 618);
}

// --- further derivatives ---

// The second derivative takes x2 for differentiated too: what its memory holds in the end was written through detach,
// unseen by autograd.
TEST(Programs, AWriteUnseenByAutogradStaysUnseenInOrderTwo) {
  fuzz::Mode mode;
  mode.order = 2;
  expectAsEager(R"(def computation(p1, x2):
    # p1: "f64[4, 4]", parameter
    # x2: "f64[4]"
    v15 = torch.ops.aten.slice.Tensor(x2, 0, 1, None, 1)
    v16 = torch.ops.aten.detach.default(v15)
    v18 = torch.ops.aten.reshape.default(p1, [-1])
    v19 = torch.ops.aten.narrow.default(v18, 0, 3, 3)
    v21 = torch.ops.aten.copy_.default(v16, v19)
    return (x2,)
)",
                mode, 371);
}

// --- stages ---

}  // namespace
}  // namespace retrograd

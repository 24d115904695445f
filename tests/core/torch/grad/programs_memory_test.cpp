// Programs of the fuzzer: late reads of what was written, complex and conjugated memory, gradients that are None, NaN
// or zero.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/torch/grad/programs.h"

namespace retrograd {
namespace {

// LibTorch's sign of slogdet sends no gradient back, and as_strided_scatter, whose derivative is our own, makes no
// zeros of it.
TEST(Programs, WhereNoGradientArrivesAsStridedScatterGivesNone) {
  expectAsEager(R"(def computation(x0, x1):
    # x0: "f64[3, 3]"
    # x1: "f64[2]"
    v1 = torch.ops.aten.as_strided_scatter.default(x0, x1, [2], [1], 0)
    (v2, v3) = torch.ops.aten.slogdet.default(v1)
    return (v2,)
)");
}

// Values inside an op's rule get no gradient of their own: the view as real numbers within real is not the one that
// the write goes through.
TEST(Programs, AWriteThroughTheRealPartKeepsTheGradientOfTheWhole) {
  expectAsEager(R"(def computation(p1):
    # p1: "c128[3, 2]", parameter
    v39 = torch.ops.aten.clone.default(p1)
    v40 = torch.ops.aten.real.default(v39)
    v42 = torch.ops.aten.add_.Tensor(v40, v40)
    return (v39,)
)");
}

// The memory of a lazily conjugated result is not what its elements are: the copy that an aliased write runs on is one
// of the memory.
TEST(Programs, AnAliasedWriteIntoConjugatedMemoryReadsTheMemory) {
  expectAsEager(R"(def computation(x1):
    # x1: "f64[4, 4]", no grad
    v21 = torch.ops.aten.fft_ifft.default(x1)
    v27 = torch.ops.aten.mH.default(v21)
    v29 = torch.ops.aten.add_.Tensor(v27, v27)
    return (v29,)
)");
}

// A copy is resolved: what takes the place of lazily conjugated memory has to be conjugated again, or the views made of
// it look at something else.
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

// `quantile` writes in place inside: in the second derivation that write is the last one that the memory of its result
// has, and it came before the one in the program, which the joint trace makes in a copy.
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

// Written before and after it is read: one value represents both in a second derivative.
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

// kron looks at its operands through views that autograd does not know of; the lazy conjugate of a buffer lies in the
// buffer's memory.
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

// At other sizes a slice of the first derivative may hold fewer elements, and LibTorch's kernel of batch norm does not
// look how many weights there are.
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

// What `reshape` gives is a view at one size and a copy at the other, so the write reaches the input at the first size
// only.
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

// Batch norm writes both running statistics without a word. Where they share elements, each sees the other's write,
// which no rule says.
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

// The offset of as_strided_scatter counts in the memory of its operand; the gradient that comes may lie behind an
// offset of its own.
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

// LibTorch divides a product by each element where none is zero, and multiplies the others where one is: they differ in
// what NaN, infinity and overflow leave.
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
  const std::string plain = "v8 = torch.ops.aten.clone.default(v3)", zero = "mul.Scalar(s4, 0.0)",
                    large = "mul.Scalar(s4, 1e200)";
  const std::string notANumber = "pow.Scalar(-2.0, s4)";
  for (int order : {1, 2})
    for (const auto* op : {"default(v9)", "dim_int(v9, 0)", "dim_int(v9, -1, True)"}) {
      for (const auto* dtype : {"f64", "f32", "c128"})
        for (const auto& values : {plain, with(zero, 1), with(zero, 3)})
          expectAsEager(product(dtype, values, op), ofOrder(order));
      for (const auto& values : {with(notANumber, 1), with(large, 2), with(large, 4)})
        expectAsEager(product("f64", values, op), ofOrder(order));
    }
}

// The derivative of sgn is a ZeroTensor: what is multiplied with it or divides it stays zero, NaN of the other factor
// or not.
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

// Batch norm raises no version of its running statistics: what an earlier op saved of their memory is read as they are
// by then.
TEST(Programs, TheBackwardReadsRunningStatisticsAsBatchNormLeftThem) {
  const std::string program = R"(def computation(x1, x2, p3, b4):
    # x1: "f64[3]", no grad
    # x2: "f64[4, 3, 2]"
    # p3: "f64[3]", parameter
    # b4: "f64[3]", buffer
    v5 = torch.ops.aten.add.Scalar(x1, 0.25)
    v6 = torch.ops.aten.mul.Tensor(p3, v5)
    v7 = torch.ops.aten.detach.default(v5)
    (v8, v9, v10) = torch.ops.aten.native_batch_norm.default(x2, None, None, v7, b4, True, 0.25, 0.01)
    return (v6, v8)
)";
  expectAsEager(program);
  auto legitimate = program;  // says what it writes to, and raises no version counter either
  legitimate.replace(legitimate.find("native_batch_norm.default"), 25, "_native_batch_norm_legit.default");
  expectAsEager(legitimate);
}

// The same where an input itself was saved, or a view of it; also in the second derivative, though the input has its
// new content at the end of the first joint's forward.
TEST(Programs, TheBackwardReadsAnInputAsBatchNormLeftIt) {
  for (const char* program : {R"(def computation(x0, x5, b6):
    # x0: "f64[3]"
    # x5: "f64[2, 3, 2]"
    # b6: "f64[3]", buffer
    v21 = torch.ops.aten.atan.default(x0)
    v25 = torch.ops.aten.detach.default(x0)
    (v26, v27, v28) = torch.ops.aten.native_batch_norm.default(x5, None, None, v25, b6, True, 0.25, 0.01)
    return (v21,)
)",
                              R"(def computation(x1, x6, x7, p8):
    # x1: "f64[3]"
    # x6: "f64[2, 2]"
    # x7: "f64[2, 3, 3]"
    # p8: "f64[3]", parameter
    v13 = torch.ops.aten.narrow.default(x1, 0, 1, 2)
    v23 = torch.ops.aten.addr.default(x6, v13, v13)
    v28 = torch.ops.aten.detach.default(x1)
    v29 = torch.ops.aten.abs.default(p8)
    v30 = torch.ops.aten.detach.default(v29)
    (v31, v32, v33) = torch.ops.aten.native_batch_norm.default(x7, None, p8, v28, v30, True, 0.25, 0.01)
    return (v23,)
)"})
    for (const int order : {1, 2}) expectAsEager(program, ofOrder(order));
}

// A write that autograd saw, before what is saved, doesn't keep it from being read late.
TEST(Programs, TheBackwardReadsRunningStatisticsLateAfterAnEarlierWrite) {
  expectAsEager(R"(def computation(x1, x2, p3, b4):
    # x1: "f64[3]", no grad
    # x2: "f64[4, 3, 2]"
    # p3: "f64[3]", parameter
    # b4: "f64[3]", buffer
    v5 = torch.ops.aten.add.Scalar(x1, 0.25)
    v6 = torch.ops.aten.mul_.Scalar(v5, 1.5)
    v7 = torch.ops.aten.mul.Tensor(p3, v5)
    v8 = torch.ops.aten.detach.default(v5)
    (v9, v10, v11) = torch.ops.aten.native_batch_norm.default(x2, None, None, v8, b4, True, 0.25, 0.01)
    return (v7, v9)
)");
}

// And a view taken after that write is younger than what the write left, whatever their numbers in the document.
TEST(Programs, TheBackwardReadsRunningStatisticsLateThroughAViewOfWhatWasWritten) {
  expectAsEager(R"(def computation(x1, p2, b4):
    # x1: "f32[]", no grad
    # p2: "f32[]", parameter
    # b4: "f32[2]", buffer
    v28 = torch.ops.aten.repeat.default(x1, [8])
    v29 = torch.ops.aten.reshape.default(v28, [2, 2, 2])
    v35 = torch.ops.aten.repeat.default(x1, [2])
    v41 = torch.ops.aten.mul_.Tensor(b4, p2)
    v42 = torch.ops.aten.unsqueeze.default(b4, 1)
    v43 = torch.ops.aten.sin.default(v42)
    v46 = torch.ops.aten.detach.default(b4)
    (v47, v48, v49) = torch.ops.aten._native_batch_norm_legit.default(v29, None, None, v35, v46, True, 0.25, 0.01)
    return (v43,)
)");
}

// Nobody else names the tensor that batch norm writes to, but it lies in the memory of an input.
TEST(Programs, RunningStatisticsInTheMemoryOfAnInputAreWrittenOnce) {
  fuzz::Mode mode;
  mode.cuts = {4};
  const std::string program = R"(def computation(x0, b3, p4):
    # x0: "f64[3]"
    # b3: "f64[3]", buffer
    # p4: "f64[3, 3]", parameter
    v13 = torch.ops.aten.repeat.default(x0, [6])
    v14 = torch.ops.aten.reshape.default(v13, [2, 3, 3])
    v15 = torch.ops.aten.detach.default(x0)
    v16 = torch.ops.aten.batch_norm.default(v14, None, None, b3, v15, True, 0.25, 0.01, False)
    return (p4,)
)";
  expectAsEager(program);
  EXPECT_FALSE(verdictOf(program, mode, 639).isFinding()) << verdictOf(program, mode, 639).message;
}

// The kernel writes its running statistics while it reads its other operands.
TEST(Programs, RunningStatisticsInTheMemoryOfAnotherOperandAreRefused) {
  for (const char* op : {"_native_batch_norm_legit", "native_batch_norm"})
    for (const char* operands : {"None, None, b2, b2", "b2, None, b2, b3", "None, b2, b3, v4"})
      expectRefused(fmt::format(R"(def computation(x1, b2, b3):
    # x1: "f64[4, 3, 2]"
    # b2: "f64[3]", buffer
    # b3: "f64[3]", buffer
    v4 = torch.ops.aten.detach.default(b2)
    (v5, v6, v7) = torch.ops.aten.{}.default(x1, {}, True, 0.25, 0.01)
    return (v5,)
)",
                                op, operands));
  expectRefused(R"(def computation(x1, b2, b3):
    # x1: "f64[4, 3, 2]"
    # b2: "f64[3]", buffer
    # b3: "f64[3]", buffer
    v4 = torch.ops.aten.mul_.Tensor(b2, b2)
    (v5, v6, v7) = torch.ops.aten._native_batch_norm_legit.default(x1, v4, None, b3, b2, True, 0.25, 0.01)
    return (v5,)
)");
  expectAsEager(R"(def computation(x1, b2):
    # x1: "f64[4, 3, 2]"
    # b2: "f64[6]", buffer
    v3 = torch.ops.aten.narrow.default(b2, 0, 0, 3)
    v4 = torch.ops.aten.narrow.default(b2, 0, 3, 3)
    (v5, v6, v7) = torch.ops.aten._native_batch_norm_legit.default(x1, None, None, v3, v4, True, 0.25, 0.01)
    return (v5,)
)");
}

}  // namespace
}  // namespace retrograd

// Further programs that the program fuzzer found: sizes changed in place, None gradients, and cuts between what shares memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fuzz/programs/read_program.h"
#include "tests/fuzz/programs/trial.h"

namespace retrograd {
namespace {

fuzz::Verdict verdictOf(const std::string& text, const fuzz::Mode& mode = {}) { return fuzz::tryProgram(fuzz::readProgram(text, 1, mode)); }

void expectAsEager(const std::string& text, const fuzz::Mode& mode = {}) {
  const auto verdict = verdictOf(text, mode);
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

}  // namespace
}  // namespace retrograd

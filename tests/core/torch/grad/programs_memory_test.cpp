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

}  // namespace
}  // namespace retrograd

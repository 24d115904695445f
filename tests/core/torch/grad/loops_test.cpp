// scan, map and while_loop: what they unroll to, and what they refuse.
#include <gtest/gtest.h>

#include <cstring>
#include <stop_token>
#include <thread>

#include "core/formats/text/text_trace.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/judging/compare.h"
#include "core/torch/session/session.h"
#include "core/torch/tracing/op_table.h"
#include "tests/support/comparison.h"

namespace retrograd::test {
namespace {

/// `loop`: the lines that call `body`, which takes a carry, a slice and w.
std::string textOf(const std::string& loop, const std::string& results = "(e, f)") {
  return R"(
def computation(x, y, w):
    # x: "f32[3, 4]"
    # y: "f32[2, 4]"
    # w: "f32[4]", parameter
    start = aten.mul.Tensor(w, w)
    def body(c, s, v):
        # c: "f32[4]"
        # s: "f32[4]"
        # v: "f32[4]"
        d = aten.mul.Tensor(s, v)
        e = aten.add.Tensor(c, d)
        f = aten.sin(e)
        return )" +
         results + R"(
    )" + loop +
         "\n";
}

std::shared_ptr<const Analysis> opened(const std::string& text, const Progress& progress = {}) {
  return analyse(readTextModel(text, "loop.txt", lookupSymbol), {}, progress);
}

/// Why the text cannot be derived; empty where it can.
std::string refusal(const std::string& text, const Progress& progress = {}) {
  try {
    const auto a = opened(text, progress);
    if (a->derived()) return "";
    return a->problems.empty() ? "not derived" : a->problems.front().message;
  } catch (const Error& error) {
    return error.what();
  }
}

#define EXPECT_REFUSED(text, words) EXPECT_NE(refusal(text).find(words), std::string::npos) << refusal(text)

RunResult expectAsEager(const std::string& text) {
  const auto a = opened(text);
  EXPECT_TRUE(a->derived()) << (a->problems.empty() ? "" : a->problems[0].message);
  const auto run = runSplit(*a), eager = runEager(*a);
  test::Comparison comparison;
  EXPECT_EQ(run.outputs.size(), eager.outputs.size());
  for (std::size_t i = 0; i < run.outputs.size() && i < eager.outputs.size(); ++i) {
    EXPECT_EQ(run.outputs[i].has_value(), eager.outputs[i].has_value());
    if (run.outputs[i] && eager.outputs[i]) comparison.add("output", *run.outputs[i], *eager.outputs[i]);
  }
  EXPECT_EQ(run.gradients.size(), eager.gradients.size());
  for (const auto& [name, tensor] : eager.gradients)
    if (run.gradients.contains(name)) comparison.add(name, run.gradients.at(name), tensor);
  EXPECT_LE(comparison.error(), 1e-6) << comparison.worst() << comparison.failure();
  return run;
}

std::vector<float> floats(const TensorData& tensor) {
  std::vector<float> numbers(tensor.bytes / sizeof(float));
  std::memcpy(numbers.data(), tensor.data, tensor.bytes);
  return numbers;
}

TEST(Loops, ScanAndMapUnroll) {
  expectAsEager(textOf("carry, ys = torch.ops.higher_order.scan(body, [start], [x], [w])\n    return (carry, ys)"));
  expectAsEager(textOf("a, b = torch.ops.higher_order.map_impl(body, [x], [w, start])\n    return (a, b)"));
}

// Files of PyTorch 2.6 and older say dim and reverse. The last step of a reversed scan is at index 0.
TEST(Loops, ScanRunsBackwardsWhereTheFileSaysSo) {
  for (const bool reverse : {false, true}) {
    const auto run =
        expectAsEager(textOf("carry, ys = torch.ops.higher_order.scan(body, [start], [x], 0, " +
                                 std::string(reverse ? "True" : "False") + ", [w])\n    return (carry, ys)",
                             "(e, e)"));
    const auto carry = floats(*run.outputs[0]), ys = floats(*run.outputs[1]);
    ASSERT_EQ(ys.size(), 3 * carry.size());
    const auto last = reverse ? ys.begin() : ys.end() - 4;
    EXPECT_TRUE(std::equal(carry.begin(), carry.end(), last)) << reverse;
    EXPECT_FALSE(std::equal(carry.begin(), carry.end(), reverse ? ys.end() - 4 : ys.begin())) << reverse;
  }
  EXPECT_REFUSED(
      textOf("carry, ys = torch.ops.higher_order.scan(body, [start], [x], 1, False, [w])\n    return (carry, ys)"),
      "dimension 1");
}

// A scan over no tensors gives its carry, as in PyTorch; a loop over nothing, None, a length of 0 or of two
// lengths is refused.
TEST(Loops, LoopsOverNothing) {
  const std::string scan = "carry = torch.ops.higher_order.scan(body, [start], ";
  const auto run = expectAsEager(textOf(scan + "[], [w, w])\n    return carry", "(e,)"));
  ASSERT_TRUE(run.outputs[0]);
  EXPECT_REFUSED(textOf(scan + "[None], [w])\n    return carry", "(e,)"), "can only run over tensors");
  EXPECT_REFUSED(textOf(scan + "[2], [w])\n    return carry", "(e,)"), "can only run over tensors");
  EXPECT_REFUSED(textOf(scan + "[x, y], [w])\n    return carry", "(e,)"), "different lengths, 3 and 2");
  EXPECT_REFUSED(textOf("empty = aten.slice.Tensor(x, 0, 3)\n    " + scan + "[empty], [w])\n    return carry", "(e,)"),
                 "length of 0");
  EXPECT_REFUSED(textOf("a = torch.ops.higher_order.map_impl(body, [], [start, x, w])\n    return a", "(e,)"),
                 "nothing to run over");
}

// A body gives back what it carries.
TEST(Loops, ABodyThatReturnsLessThanItsCarryIsRefused) {
  EXPECT_REFUSED(textOf("carry = torch.ops.higher_order.scan(body, [start], [x], [w])\n    return carry", "()"),
                 "returns 0 values and carries 1");
  EXPECT_REFUSED(textOf("a, b = torch.ops.higher_order.map_impl(body, [x], [w, start])\n    return (a, b)", "(e, 3)"),
                 "where a tensor is stacked");
}

std::string whileText(const std::string& condition, const std::string& body) {
  return R"(
def computation(x):
    # x: "f32[4]"
    def go(c):
        # c: "f32[4]"
        )" +
         condition + R"(
    def body(d):
        # d: "f32[4]"
        )" +
         body + R"(
    out = torch.ops.higher_order.while_loop(go, body, [x], [])
    return out
)";
}

// A loop that does not end is refused, also where it makes no ops.
TEST(Loops, AWhileLoopThatNeverEndsIsRefused) {
  EXPECT_REFUSED(whileText("return (True,)", "return (d,)"), "does this loop end?");
  EXPECT_REFUSED(whileText("return (True,)", "return (d, d)"), "returns 2 values and carries 1");
  EXPECT_REFUSED(whileText("return ()", "return (d,)"), "not one");
  EXPECT_EQ(refusal(whileText("return (False,)", "return (d,)")), "");
}

// And it can be cancelled before that.
TEST(Loops, AWhileLoopThatNeverEndsCanBeCancelled) {
  std::stop_source source;
  std::jthread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    source.request_stop();
  });
  EXPECT_NE(refusal(whileText("g = aten.sum(c)\n        h = aten.eq.Tensor(g, g)\n        return (h,)",
                              "e = aten.sin(d)\n        return (e,)"),
                    Progress(source.get_token(), {}))
                .find("cancelled"),
            std::string::npos);
}

}  // namespace
}  // namespace retrograd::test

// What a check holds at once, by bytes of tensors.
#include <gtest/gtest.h>

#include <string>

#include "core/torch/checking/check.h"
#include "core/torch/execution/memory_budget.h"
#include "core/torch/session/session.h"
#include "tests/core/formats/cases.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"

namespace retrograd {
namespace {

using test::writeTemporary;

/// A chain of ops with large values and small results.
std::string chain(int layers) {
  std::string text =
      "def computation(x, w):\n    # x: \"f32[256, 512]\"\n    # w: \"f32[512]\", parameter\n"
      "    a0 = aten.mul.Tensor(x, w)\n";
  for (int i = 0; i < layers; ++i)
    text += "    s" + std::to_string(i) + " = aten.sin(a" + std::to_string(i) + ")\n    t" + std::to_string(i) +
            " = aten.tanh(s" + std::to_string(i) + ")\n    a" + std::to_string(i + 1) + " = aten.mul.Tensor(t" +
            std::to_string(i) + ", s" + std::to_string(i) + ")\n";
  return text + "    y = aten.sum(a" + std::to_string(layers) + ")\n    return y\n";
}

/// The most that tensors take at once while `body` runs, beyond what they take before.
template <class Body>
std::int64_t peakOf(Body&& body) {
  releaseKeptMemory();
  const auto before = tensorMemory().inUse;
  body();
  const auto peak = tensorMemory().peak - before;
  releaseKeptMemory();
  return peak;
}

TEST(CheckMemory, ACheckTakesAtMostTwoAndAHalfTimesARun) {
  const auto path = writeTemporary("chain.txt", chain(24));
  const auto run = peakOf([&] {
    SessionOptions options;
    options.historyBytes = 0;
    Session session(openModel(path), options);
    session.runTo(session.size());
  });
  ASSERT_GT(run, 48 * 256 * 512 * 4);  // two saved values a layer
  const auto check = peakOf([&] {
    const auto report = checkModel(path, {});
    EXPECT_EQ(test::verdictOf(report), Verdict::pass) << decide(report).reason;
  });
  EXPECT_LE(static_cast<double>(check), 2.5 * static_cast<double>(run)) << check << " of " << run;
  EXPECT_GE(check, run);
}

}  // namespace
}  // namespace retrograd

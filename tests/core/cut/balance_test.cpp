#include "core/cut/balance.h"

#include <numeric>

#include "tests/core/cut/text_models.h"

namespace retrograd {
namespace {

using namespace test;

/// x0 = sin(x), x1 = sin(x0), ...; op i uses parameter w<i> of `sizes[i]` elements where that is not 0.
ModelFile chain(const std::vector<int>& sizes) {
  std::string inputs = "x", types = "    # x: \"f32[4]\"\n", body;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto n = std::to_string(i), before = i == 0 ? std::string("x") : "x" + std::to_string(i - 1);
    if (sizes[i] > 0) {
      inputs += ", w" + n;
      types += "    # w" + n + ": \"f32[" + std::to_string(sizes[i]) + "]\", parameter w" + n + "\n";
      body += "    x" + n + " = aten.mul.Tensor(" + before + ", w" + n + ")  # x" + n + ": \"f32[4]\"\n";
    } else {
      body += "    x" + n + " = aten.sin(" + before + ")  # x" + n + ": \"f32[4]\"\n";
    }
  }
  return modelOf("def computation(" + inputs + "):\n" + types + "\n" + body + "    return x" +
                 std::to_string(sizes.size() - 1) + "\n");
}

double dearest(const Cuts& cuts, const std::vector<double>& cost) {
  double most = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const auto begin = i == 0 ? 0 : cuts[i - 1], end = i == cuts.size() ? cost.size() : cuts[i];
    most = std::max(most, std::accumulate(cost.begin() + static_cast<std::ptrdiff_t>(begin),
                                          cost.begin() + static_cast<std::ptrdiff_t>(end), 0.0));
  }
  return most;
}

TEST(Balance, TheDearestStageIsAsCheapAsCanBe) {
  const auto model = chain({100, 100, 100, 100, 0, 0, 800, 0});
  const auto cost = parameterCosts(*model.document, model.computation);
  EXPECT_EQ(cost, (std::vector<double>{100, 100, 100, 100, 0, 0, 800, 0}));
  const auto two = balancedCuts(*model.document, model.computation, 2, cost);
  ASSERT_EQ(two.size(), 1u);
  EXPECT_EQ(dearest(two, cost), 800);
  const auto three = balancedCuts(*model.document, model.computation, 3, cost);
  EXPECT_EQ(three.size(), 2u);
  EXPECT_EQ(dearest(three, cost), 800);
  EXPECT_EQ(splitOf(model, three).stages.size(), 3u);
}

TEST(Balance, MatchesTryingEveryCut) {
  const auto model = chain({0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  std::uint32_t state = 1;
  for (int round = 0; round < 50; ++round) {
    std::vector<double> cost(10);
    for (auto& c : cost) c = (state = state * 1664525u + 1013904223u) % 97;
    double best = 1e9;
    for (std::size_t i = 1; i < 10; ++i)
      for (std::size_t k = i + 1; k < 10; ++k) best = std::min(best, dearest({i, k}, cost));
    const auto cuts = balancedCuts(*model.document, model.computation, 3, cost);
    ASSERT_EQ(cuts.size(), 2u);
    EXPECT_LE(dearest(cuts, cost), 1.05 * best + 1e-6) << round;
  }
}

TEST(Balance, AmongEqualsTheCutThatSendsLeastWins) {
  const auto model = modelOf(R"(
def computation(x):
    # x: "f32[4, 4]"
    a = aten.sin(x)  # a: "f32[4, 4]"
    b = aten.sum.dim_IntList(a, [0])  # b: "f32[4]"
    c = aten.expand(b, [4, 4])  # c: "f32[4, 4] strides [0, 1]", shares b
    d = aten.sin(c)  # d: "f32[4, 4]"
    return d
)");
  EXPECT_EQ(bytesAcross(*model.document, model.computation), (std::vector<std::int64_t>{0, 64, 16, 64, 0}));
  EXPECT_EQ(balancedCuts(*model.document, model.computation, 2, {0, 0, 0, 0}), Cuts{2});
}

// Holds P29: the policy keeps what writes in place with what shares its memory.
TEST(Balance, WritesAreNotParted) {
  const auto model = modelOf(R"(
def computation(m, x):
    # m: "f32[4]", buffer m
    # x: "f32[4]"
    a = aten.sin(x)  # a: "f32[4]"
    b = aten.cos(a)  # b: "f32[4]"
    c = aten.mul_.Tensor(a, x)  # c: "f32[4]", shares a, version 1
    d = aten.sin(m)  # d: "f32[4]"
    e = aten.add_.Tensor(m, d)  # e: "f32[4]", shares m, version 1
    f = aten.add.Tensor(c, b)  # f: "f32[4]"
    return f
)");
  EXPECT_EQ(uncuttable(*model.document, model.computation), (std::vector<char>{1, 1, 1, 0, 1, 0, 1}));
  EXPECT_EQ(balancedCuts(*model.document, model.computation, 3, {1, 1, 1, 1, 1, 1}), (Cuts{3, 5}));
  const auto error = errorOf([&] { balancedCuts(*model.document, model.computation, 4, {1, 1, 1, 1, 1, 1}); });
  EXPECT_NE(
      error.find(
          "has 6 ops and cannot be cut into 4 stages; 3 is the most, because a cut may not part a write in place"),
      std::string::npos)
      << error;
}

TEST(Balance, BytesCountWeightsOnceAndViewsNot) {
  const auto model = modelOf(R"(
def computation(w, x):
    # w: "f32[4, 4]", parameter w
    # x: "f32[4, 4]"
    a = aten.mm(x, w)  # a: "f32[4, 4]"
    b = aten.t(a)  # b: "f32[4, 4] strides [1, 4]", shares a
    c = aten.mm(b, w)  # c: "f32[4, 4]"
    return c
)");
  EXPECT_EQ(byteCosts(*model.document, model.computation), (std::vector<double>{128, 0, 64}));
}

}  // namespace
}  // namespace retrograd
